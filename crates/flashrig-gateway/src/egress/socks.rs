//! SOCKS clients: told no in their own protocol, after they have said where they want to go.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::allow::Destination;

/// "Request rejected", SOCKS4.
const REJECTED_4: [u8; 8] = [0, 0x5b, 0, 0, 0, 0, 0, 0];
/// "Connection not allowed by ruleset", SOCKS5.
const REJECTED_5: [u8; 10] = [5, 2, 0, 1, 0, 0, 0, 0, 0, 0];
/// The longest user name or host name that is read from a SOCKS4 client.
const LONGEST_4: usize = 256;

/// Whether a client that begins with this byte speaks SOCKS.
pub(super) fn speaks_socks(first: u8) -> bool {
    matches!(first, 4 | 5)
}

/// Refuses a client; the protocol's name, and where it wanted to go when it said so.
pub(super) async fn refuse(stream: &mut TcpStream) -> (&'static str, Option<Destination>) {
    let Ok(version) = stream.read_u8().await else {
        return ("SOCKS", None);
    };
    let (name, asked) = if version == 4 {
        ("SOCKS4", four(stream).await)
    } else {
        ("SOCKS5", five(stream).await)
    };
    let _ = stream.shutdown().await;
    // A client that breaks off or writes nonsense has named no destination.
    (name, asked.ok().flatten())
}

async fn four(stream: &mut TcpStream) -> std::io::Result<Option<Destination>> {
    let _command = stream.read_u8().await?;
    let port = stream.read_u16().await?;
    let ip = stream.read_u32().await?.to_be_bytes();
    until_zero(stream).await?;
    let host = match ip {
        // SOCKS4a: the name follows.
        [0, 0, 0, last] if last != 0 => until_zero(stream).await?,
        _ => std::net::Ipv4Addr::from(ip).to_string(),
    };
    stream.write_all(&REJECTED_4).await?;
    Ok(Destination::new(&host, port))
}

async fn five(stream: &mut TcpStream) -> std::io::Result<Option<Destination>> {
    let count = stream.read_u8().await?;
    let mut methods = vec![0; usize::from(count)];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&0) {
        stream.write_all(&[5, 0xff]).await?;
        return Ok(None);
    }
    stream.write_all(&[5, 0]).await?;
    let [_version, _command, _reserved, kind] = stream.read_u32().await?.to_be_bytes();
    let host = match kind {
        1 => std::net::Ipv4Addr::from(stream.read_u32().await?).to_string(),
        4 => std::net::Ipv6Addr::from(stream.read_u128().await?).to_string(),
        3 => {
            let length = stream.read_u8().await?;
            let mut name = vec![0; usize::from(length)];
            stream.read_exact(&mut name).await?;
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => {
            stream.write_all(&REJECTED_5).await?;
            return Ok(None);
        }
    };
    let port = stream.read_u16().await?;
    stream.write_all(&REJECTED_5).await?;
    Ok(Destination::new(&host, port))
}

async fn until_zero(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut text = Vec::new();
    loop {
        match stream.read_u8().await? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            _ if text.len() >= LONGEST_4 => return Err(std::io::ErrorKind::InvalidData.into()),
            byte => text.push(byte),
        }
    }
}
