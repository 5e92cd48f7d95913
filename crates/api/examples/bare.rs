//! A bare actix handler that serves the same JSON: the baseline of `cargo xtask bench`.
//!
//! `bare <file>` responds to every request with the JSON in the file, serialized anew each time.

#![expect(clippy::print_stdout, reason = "the benchmark reads where it listens")]

use actix_web::{App, HttpResponse, HttpServer, web};
use serde_json::Value;

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: bare <file>")?;
    let body: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let body = web::Data::new(body);
    let server = HttpServer::new(move || {
        App::new().app_data(body.clone()).route(
            "/{path:.*}",
            web::get().to(|body: web::Data<Value>| async move { HttpResponse::Ok().json(&**body) }),
        )
    })
    .bind("127.0.0.1:0")?;
    for address in server.addrs() {
        println!("http://{address}");
    }
    Ok(server.run().await?)
}
