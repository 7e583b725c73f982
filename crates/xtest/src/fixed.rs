//! A provider that says what a test wants, byte for byte, where the model server would only say what is sound.

use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

/// Answers the first request with the first body and so on; the last body answers all others. Returns the address.
///
/// # Panics
///
/// When no port is free.
pub fn provider(bodies: Vec<Value>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    // The thread ends with the test.
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Some(body) = bodies.get(number).or_else(|| bodies.last()) else { return };
            if let Ok(stream) = stream {
                answer(stream, &body.to_string());
            }
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, body: &str) {
    let (mut asked, mut piece) = (Vec::new(), [0_u8; 4096]);
    while !is_whole(&asked) {
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => asked.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    // A client that went away is no matter of this server.
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok();
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let head = head.to_ascii_lowercase();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}
