//! A terminal with flashrig in it, as people see it.

use std::io::{Read as _, Write as _};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use flashrig_testkit::waiting::PATIENCE;

/// Tall enough that nothing scrolls away.
const SIZE: PtySize = PtySize {
    rows: 60,
    cols: 90,
    pixel_width: 0,
    pixel_height: 0,
};

pub struct Terminal {
    screen: Arc<Mutex<vt100::Parser>>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn std::io::Write + Send>,
    reading: JoinHandle<()>,
}

impl Terminal {
    /// Starts what `command` names, with no other environment than it gives.
    pub fn start(command: &Command) -> Self {
        let pair = native_pty_system().openpty(SIZE).unwrap();
        let mut builder = CommandBuilder::new(command.get_program());
        builder.args(command.get_args());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap());
        }
        builder.env("TERM", "xterm");
        builder.cwd(command.get_current_dir().unwrap());
        let child = pair.slave.spawn_command(builder).unwrap();
        let [rows, columns] = [SIZE.rows, SIZE.cols].map(|n| n.try_into().unwrap());
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let mut output = pair.master.try_clone_reader().unwrap();
        let shown = Arc::clone(&screen);
        let reading = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // A terminal of which every program is gone reads as an error on Linux.
            while let Ok(length @ 1..) = output.read(&mut piece) {
                shown.lock().process(&piece[..length]);
            }
        });
        Self {
            screen,
            child,
            keyboard: pair.master.take_writer().unwrap(),
            master: pair.master,
            reading,
        }
    }

    /// What stands on it now.
    pub fn shown(&self) -> String {
        self.screen.lock().screen().contents()
    }

    pub fn wait_for(&self, what: &str, condition: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !condition(&self.shown()) {
            let shown = self.shown();
            assert!(
                Instant::now() < deadline,
                "gave up waiting until {what}: {shown}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types Ctrl-C, which the terminal echoes as `^C`.
    pub fn ctrl_c(&mut self) {
        self.keyboard.write_all(b"\x03").unwrap();
    }

    /// Waits for the end: exit code and what is left on the terminal. The cursor must be visible, at
    /// the start of the row below.
    pub fn ended(self) -> (u32, String) {
        let (code, text, screen) = self.end();
        assert!(!screen.hide_cursor(), "{text}");
        let (row, column) = screen.cursor_position();
        let below = usize::from(row) >= text.trim_end().lines().count();
        assert!(column == 0 && below, "{text}");
        (code, text)
    }

    /// The same for what was ended at once, which may be in the middle of a line.
    pub fn ended_at_once(self) -> (u32, String) {
        let (code, text, screen) = self.end();
        assert!(!screen.hide_cursor(), "{text}");
        (code, text)
    }

    fn end(mut self) -> (u32, String, vt100::Screen) {
        let code = self.child.wait().unwrap().exit_code();
        drop((self.master, self.keyboard));
        self.reading.join().unwrap();
        let screen = self.screen.lock().screen().clone();
        (code, screen.contents(), screen)
    }
}
