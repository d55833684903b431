// Package nginx renders a MyProxy's nginx configuration. It is pure: the same spec gives the same bytes.
package nginx

import "fmt"

// The ports that nginx listens at.
const (
	PortHTTP   = 8080
	PortHealth = 8081
)

// HealthPath answers 200 on PortHealth while nginx serves.
const HealthPath = "/healthz"

// Config is the configuration of a fleet without routes: 404 with a one-line body for every request, health and
// stub_status on a port of their own. workers is the number of worker processes.
//
// It needs no file of the image but mime.types, and writes to /run and /var/cache/nginx only: all else is read-only.
func Config(workers int64) string {
	return fmt.Sprintf(config, workers, PortHealth, HealthPath, PortHTTP)
}

const config = `worker_processes %d;
pid /run/nginx.pid;
error_log stderr notice;

events {
    worker_connections 4096;
}

http {
    include /etc/nginx/mime.types;
    default_type application/octet-stream;
    server_tokens off;
    access_log /dev/stdout;

    client_body_temp_path /var/cache/nginx/client;
    proxy_temp_path /var/cache/nginx/proxy;
    fastcgi_temp_path /var/cache/nginx/fastcgi;
    uwsgi_temp_path /var/cache/nginx/uwsgi;
    scgi_temp_path /var/cache/nginx/scgi;

    server {
        listen %d;
        access_log off;
        location = %s {
            default_type text/plain;
            return 200 "ok\n";
        }
        location = /stub_status {
            stub_status;
        }
        location / {
            return 404;
        }
    }

    server {
        listen %d default_server;
        location / {
            default_type text/plain;
            return 404 "no route\n";
        }
    }
}
`
