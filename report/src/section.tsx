/** A part of the page, with its heading and one line that says how to read it. */
import type { ComponentChildren } from "preact";

interface Props {
  id: string;
  title: string;
  hint?: ComponentChildren;
  aside?: ComponentChildren;
  children: ComponentChildren;
}

export function Section({ id, title, hint, aside, children }: Props) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <header>
        <div>
          <h2 id={`${id}-title`}>{title}</h2>
          {hint && <p class="hint">{hint}</p>}
        </div>
        {aside}
      </header>
      {children}
    </section>
  );
}

/** What stands where there is nothing to show, and why. */
export const Empty = ({ children }: { children: ComponentChildren }) => <p class="empty">{children}</p>;
