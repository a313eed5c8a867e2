//! The guest's process: how it is started, and that nothing of it is left.

use super::processor::OneProcessor;
use super::{GuestConfig, GuestError};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::poll;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Names of the sockets in the folder that the guest is started in. They are on its command line, which must be the same in every run.
const DEVICE: &str = "pci";
const CALENDAR: &str = "time";

/// The number of looks at a process that has closed its sockets until it has ended, and the milliseconds between them.
const LOOKS: u32 = 500;
const BETWEEN_LOOKS: u8 = 10;

/// A guest's process, its folder and the sockets that it will connect to. Dropped, it takes all of them with it.
pub(super) struct GuestProcess {
    child: Child,
    folder: PathBuf,
    pub(super) device: UnixListener,
    pub(super) calendar: UnixListener,
    /// Its output; `None`: on our own terminal.
    pub(super) console: Option<File>,
    _processor: Option<OneProcessor>,
}

impl GuestProcess {
    /// Starts the kernel in `folder`, which holds its initramfs and nothing else.
    pub(super) fn start(config: &GuestConfig, folder: PathBuf) -> Result<Self, GuestError> {
        let started = Self::start_in(config, folder.clone());
        if started.is_err() {
            let _ = std::fs::remove_dir_all(&folder);
        }
        started
    }

    fn start_in(config: &GuestConfig, folder: PathBuf) -> Result<Self, GuestError> {
        let at = |what: &'static str| move |source: io::Error| GuestError::Start { what, source };
        let device = UnixListener::bind(folder.join(DEVICE)).map_err(at("its socket for PCI"))?;
        let calendar = UnixListener::bind(folder.join(CALENDAR)).map_err(at("its socket for time"))?;
        let mut command = Command::new(&config.kernel);
        command.current_dir(&folder).args(arguments(config)).env_clear();
        // Where user-mode Linux makes the file that its memory is.
        command.env("TMPDIR", &folder).env("HOME", "/root").env("PATH", "/usr/bin:/bin").env("TERM", "linux");
        if config.interactive {
            command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        } else {
            // The console reads from what can be waited for; nothing ever comes.
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            // Ctrl-C at our terminal is ours to handle.
            command.process_group(0);
        }
        end_with_parent(&mut command);
        let processor = OneProcessor::stay();
        let mut child = command.spawn().map_err(at("its kernel"))?;
        let console = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let process = Self { child, folder, device, calendar, console, _processor: processor };
        if let Some(console) = &process.console {
            let flags = fcntl(console, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
            flags.map_err(|error| at("its console")(error.into()))?;
        }
        Ok(process)
    }

    /// Its end, if it has ended.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Its end, once it is seen to end: a moment after it closed its sockets. `None`: it does not.
    pub(super) fn wait_a_while(&mut self) -> io::Result<Option<ExitStatus>> {
        for _ in 0..LOOKS {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            let _ = poll(&mut [], BETWEEN_LOOKS);
        }
        self.end()?;
        Ok(None)
    }

    /// Ends it, and waits until it has.
    pub(super) fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        self.kill();
        self.child.wait()
    }

    /// Ends it and all processes that it has started.
    fn kill(&mut self) {
        let group = Pid::from_raw(self.child.id() as i32);
        // An interactive guest is in our own group; it ends its processes itself.
        if killpg(group, Signal::SIGKILL).is_err() {
            let _ = self.child.kill();
        }
    }
}

impl Drop for GuestProcess {
    fn drop(&mut self) {
        let _ = self.end();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A guest that computes looks at no socket, and would not notice that nobody is there any more.
#[allow(unsafe_code)]
fn end_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    let ask = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may be gone already.
        if nix::unistd::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    // SAFETY: between fork and exec this makes two system calls, and takes no lock and no memory.
    unsafe { command.pre_exec(ask) };
}

/// The kernel's command line. It is a function of the configuration alone: it goes into the guest's random numbers.
fn arguments(config: &GuestConfig) -> Vec<String> {
    let mut all = vec![
        format!("mem={}", config.memory),
        format!("initrd={}", config.initramfs),
        format!("um_random_seed={}", config.seed),
        "con=null".into(),
        "con0=fd:0,fd:1".into(),
        format!("virtio_uml.device={DEVICE}:1234"),
        format!("time-travel=ext:{CALENDAR}"),
        "seccomp=on".into(),
        "norandmaps".into(),
        "um_pci_tunnel".into(),
        // Otherwise the name of its own folder is random, and it prints it.
        "umid=guest".into(),
        "uml_dir=.".into(),
        // There is no I/O space: no use in asking for some below each slot.
        "pci=hpiosize=0".into(),
    ];
    let costs = [("um_syscall_ns", config.syscall_ns), ("um_interrupt_ns", config.interrupt_ns)];
    all.extend(costs.iter().filter(|(_, ns)| *ns > 0).map(|(name, ns)| format!("{name}={ns}")));
    if let Some(share) = &config.share {
        all.push(format!("hostfs={}", share.display()));
        all.push("tlplab.share".into());
    }
    all.extend(config.arguments.iter().cloned());
    all
}

/// The end of a process, in words.
pub(super) fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with status {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".into(),
    }
}
