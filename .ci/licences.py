"""Checks the licences of the Python and npm packages that the lock files name; deny.toml does it for the crates.

Shipped parts (python/requirements.txt, the page's bundled packages) must be permissive; tools that only build or test
may also be under the Mozilla licence.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PERMISSIVE = {
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "0BSD",
    "ISC",
    "PSF-2.0",
    "BlueOak-1.0.0",
    "Zlib",
    "CC0-1.0",
    "MIT-CMU",
}
FOR_TOOLS = PERMISSIVE | {"MPL-2.0", "CC-BY-4.0"}
# Names by which packages of the time before licence expressions call the same licences.
OLDER_NAMES = {
    "apache-2.0": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "ISC license": "ISC",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}


def permitted(expression: str, allowed: set[str]) -> bool:
    """True if one alternative of a licence expression is allowed whole: `OR` chooses, `AND` adds."""
    alternatives = re.split(r"\s+OR\s+", expression.strip("() "))
    return any(
        all(part.strip("() ") in allowed for part in re.split(r"\s+AND\s+", alternative))
        for alternative in alternatives
    )


def declared(package: Distribution) -> str:
    """The licence that an installed package declares, as an expression; empty when it declares none."""
    metadata = package.metadata
    fields = ("License-Expression", "License")
    expression = next((metadata[field] for field in fields if field in metadata), "")
    expression = OLDER_NAMES.get(expression, expression)
    classifiers = [OLDER_NAMES[c] for c in metadata.get_all("Classifier") or [] if c in OLDER_NAMES]
    return expression if expression and permitted(expression, FOR_TOOLS) else " AND ".join(classifiers) or expression


def locked(path: Path) -> list[tuple[str, str]]:
    """The (name, version) pairs of a requirements file that are for this platform and Python, without those it includes."""
    lines = path.read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith(("#", "-r"))]
    meant = [one for one in requirements if one.marker is None or one.marker.evaluate()]
    return [(one.name, str(one.specifier).removeprefix("==")) for one in meant]


def check_python(path: Path, allowed: set[str]) -> list[str]:
    """One sentence for each locked package with another licence or version than it should have."""
    found = []
    for name, version in locked(path):
        package = distribution(name)
        if package.version != version:
            found.append(f"{path.name}: {name} {version} is locked, {package.version} is installed")
        licence = declared(package)
        if not permitted(licence, allowed):
            found.append(f"{path.name}: {name} is under {licence or 'no licence it declares'}")
    return found


def check_npm(lock: dict[str, object]) -> list[str]:
    """One sentence for each package of a package-lock.json with another licence than it should have."""
    packages = lock["packages"]
    assert isinstance(packages, dict)
    found = []
    for path, package in packages.items():
        if not path:
            continue
        licence = package.get("license", "")
        if not permitted(licence, FOR_TOOLS if package.get("dev") else PERMISSIVE):
            found.append(f"report/package-lock.json: {path} is under {licence or 'no licence it declares'}")
    return found


def main() -> int:
    """The exit status: 0 when every licence is allowed."""
    found = check_python(ROOT / "python/requirements.txt", PERMISSIVE)
    found += check_python(ROOT / "python/requirements-dev.txt", FOR_TOOLS)
    found += check_npm(json.loads((ROOT / "report/package-lock.json").read_text(encoding="utf-8")))
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
