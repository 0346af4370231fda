//! Stands before a server and changes what some of its pages say.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use crate::support::http::fetch;

/// What is made of a page: status and body in, status and body out; `None` passes it on.
pub type Change = dyn Fn(&str, u16, String) -> Option<(u16, String)> + Send + Sync;

/// The proxy's address. Pages are asked for by `GET`; all else is passed on byte by byte.
pub fn before(addr: &str, change: Arc<Change>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let addr = addr.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (addr, change) = (addr.clone(), Arc::clone(&change));
            std::thread::spawn(move || serve(stream.unwrap(), &addr, &*change));
        }
    });
    url
}

fn serve(mut client: TcpStream, addr: &str, change: &Change) {
    let mut head = Vec::new();
    let mut bytes = [0; 4096];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        match client.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(n) => head.extend_from_slice(&bytes[..n]),
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    if let Some(path) = text
        .strip_prefix("GET ")
        .and_then(|rest| rest.split(' ').next())
    {
        let (status, body) = fetch(addr, "GET", path, "");
        if let Some((status, body)) = change(path, status, body) {
            let length = body.len();
            let _ = write!(
                client,
                "HTTP/1.1 {status} Changed\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            return;
        }
    }
    let mut server = TcpStream::connect(addr).unwrap();
    server.write_all(&head).unwrap();
    let mut back = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let answering = std::thread::spawn(move || {
        let _ = std::io::copy(&mut back.0, &mut back.1);
        let _ = back.1.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut client, &mut server);
    let _ = server.shutdown(Shutdown::Both);
    let _ = answering.join();
}
