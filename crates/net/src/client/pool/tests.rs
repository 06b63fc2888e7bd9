//! Connections whose peers take them and say nothing.

use tokio::net::TcpListener;

use super::*;

/// A target that takes connections and says nothing.
async fn silent() -> (TcpListener, Uri) {
    let listener = TcpListener::bind("[::1]:0").await.expect("free");
    let address = listener.local_addr().expect("bound");
    (listener, format!("coap+ws://{address}").parse().expect("a URI"))
}

/// The output of a future, within 20 s.
async fn surely<T>(wanted: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), wanted).await.expect("an end within 20 s")
}

#[tokio::test]
async fn a_connection_that_is_never_open_is_an_error_that_says_what_did_not_come() {
    let (_listener, uri) = silent().await;
    let settings = Settings { opening_max: Duration::from_millis(100), ..Settings::default() };
    let pool = ConnectionPool::default();
    let opened = surely(pool.open(&settings, &uri, None)).await;
    let error = opened.err().expect("nobody answers");
    let expected = format!("{uri}: no TCP connection and WebSocket handshake within 0.1 s");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_client_that_closes_does_not_wait_for_a_connection_that_is_being_opened() {
    let (listener, uri) = silent().await;
    let settings = Settings { opening_max: Duration::from_secs(600), ..Settings::default() };
    let pool = Arc::new(ConnectionPool::default());
    let opening = tokio::spawn({
        let pool = pool.clone();
        async move { pool.open(&settings, &uri, None).await.map(drop) }
    });
    let _line = surely(listener.accept()).await.expect("the client connects");
    surely(pool.close(Duration::from_millis(100))).await;
    assert!(!opening.is_finished());
    opening.abort();
}
