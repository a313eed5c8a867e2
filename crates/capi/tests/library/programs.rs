//! Compiles the programs of `tests/c` against the headers and the library that cargo has just built, and runs them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// What all programs are compiled with, whichever language.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-g"];
/// What a program that holds the library in itself needs from the system besides.
const SYSTEM: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

/// As which language, and with what, a program is compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    /// For the name of the executable.
    pub(crate) name: &'static str,
    /// The compiler, unless the environment variable `CC` or `CXX` names another.
    pub(crate) compiler: (&'static str, &'static str),
    /// Its options.
    pub(crate) options: &'static [&'static str],
    /// Link libtlp.a rather than libtlp.so.
    pub(crate) is_static: bool,
}

/// C11, with the static library.
pub(crate) const C: Variant =
    Variant { name: "c", compiler: ("CC", "cc"), options: &["-std=gnu11", "-O2"], is_static: true };
/// C, with the shared library, as a program that is installed would run.
pub(crate) const SHARED: Variant = Variant { name: "shared", is_static: false, ..C };
/// C++17.
pub(crate) const CPP: Variant = Variant {
    name: "cpp",
    compiler: ("CXX", "c++"),
    options: &["-x", "c++", "-std=c++17", "-O2"],
    is_static: false,
};

/// C under AddressSanitizer and UndefinedBehaviorSanitizer: the program is instrumented, and what the library allocates is watched,
/// for its allocator is the program's `malloc`.
pub(crate) const ADDRESS: Variant = Variant {
    name: "address",
    options: &[
        "-std=gnu11",
        "-O1",
        "-fno-omit-frame-pointer",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ],
    is_static: false,
    ..C
};

/// C under ThreadSanitizer. It sees what the program does, and takes the library's locks for what they are only if that is instrumented,
/// too, which needs a compiler that is not released; so what the library touches is left out (see [`run_on`]).
pub(crate) const THREAD: Variant =
    Variant { name: "thread", options: &["-std=gnu11", "-O1", "-fsanitize=thread"], is_static: false, ..C };

impl Variant {
    /// Its compiler.
    fn compiler(self) -> String {
        let (name, default) = self.compiler;
        std::env::var(name).unwrap_or_else(|_| default.to_owned())
    }

    /// Can programs be compiled so, and run? Not everybody has a compiler for C++, or the sanitizers' libraries and a kernel that they run
    /// on. A program that does nothing tells, once; if it does not end well, whoever runs the tests hears why.
    pub(crate) fn works(self) -> bool {
        static TRIED: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
        let mut tried = TRIED.lock().expect("no panic before the answer is known");
        if let Some(works) = tried.get(self.name) {
            return *works;
        }
        let missing = self.try_nothing().err();
        if let Some(why) = &missing {
            let what = format!("`{} {}` makes no program that runs", self.compiler(), self.options.join(" "));
            eprintln!("skipped: {what}: {}", why.trim());
        }
        tried.insert(self.name, missing.is_none());
        drop(tried);
        let strict = std::env::var_os("TLPLAB_STRICT").is_some_and(|strict| !strict.is_empty());
        assert!(missing.is_none() || !strict, "nothing may be skipped: TLPLAB_STRICT is set");
        missing.is_none()
    }

    fn try_nothing(self) -> Result<(), String> {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nothing-{}", self.name));
        let mut compiler = Command::new(self.compiler());
        let compiler = compiler.args(["-x", "c"]).args(self.options).arg("-").arg("-o").arg(&program);
        let ran = |command: &mut Command, input: &[u8]| -> Result<(), String> {
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| error.to_string())?;
            let sent = child.stdin.take().expect("it is piped").write_all(input);
            let done = child.wait_with_output().map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            if done.status.success() && sent.is_ok() {
                Ok(())
            } else {
                Err(format!("{}\n{said}", done.status))
            }
        };
        ran(compiler, b"int main(void) { return 0; }\n")?;
        ran(&mut Command::new(program), b"")
    }
}

/// Where cargo has put libtlp.a and libtlp.so: beside this test.
fn library_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("it is in a folder").to_owned()
}

/// A folder in which the dynamic linker finds the shared library under the name that programs ask for, as `make install-lib`
/// would make one.
fn installed_folder(folder: &Path) -> PathBuf {
    let installed = folder.join("installed");
    std::fs::create_dir_all(&installed).expect("the build's folder can be written");
    let (link, library) = (installed.join("libtlp.so.0"), library_folder().join("libtlp.so"));
    if std::fs::read_link(&link).is_ok_and(|old| old != library) {
        // The build's folder has been copied from elsewhere.
        let _ = std::fs::remove_file(&link);
    }
    match std::os::unix::fs::symlink(library, &link) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            panic!("{}: {error}", link.display())
        }
        _ => installed,
    }
}

/// Compiles `source`, a file or a path under `tests/c`, and returns the executable.
pub(crate) fn compile(source: &str, variant: Variant) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let stem = Path::new(source).file_stem().expect("a file").to_str().expect("UTF-8");
    let program = out.join(format!("{stem}-{}", variant.name));
    let mut command = Command::new(variant.compiler());
    command.args(WARNINGS).args(variant.options);
    command.arg("-I").arg(package.join("include")).arg("-I").arg(package.join("tests/library/c"));
    command.arg(package.join("tests/library/c").join(source)).arg("-o").arg(&program).args(["-x", "none"]);
    if variant.is_static {
        command.arg(library_folder().join("libtlp.a")).args(SYSTEM);
    } else {
        let path = format!("-Wl,-rpath,{}", installed_folder(out).display());
        command.arg(library_folder().join("libtlp.so")).arg(path).arg("-lpthread");
    }
    let done = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
    program
}

/// Compiles a program of somebody else's, of whose own faults the compiler may warn; what it said.
pub(crate) fn compile_published(source: &Path, variant: Variant) -> String {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = format!("published-{}", source.file_stem().expect("a file").display());
    let mut command = Command::new(variant.compiler());
    command.args(variant.options).arg("-I").arg(package.join("include")).arg(source);
    command.arg("-o").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    command.arg(library_folder().join("libtlp.a")).args(SYSTEM);
    let done = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command:?}\n{said}");
    said
}

/// Runs a program that must end well, with this to read; what it printed.
pub(crate) fn run_on(program: &Path, arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(program);
    command.env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut pipe = child.stdin.take().expect("it is piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let done = child.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{} {arguments:?}: {}\n{errors}", program.display(), done.status);
    writer.join().expect("no panic").expect("it has read everything");
    String::from_utf8(done.stdout).expect("UTF-8")
}
