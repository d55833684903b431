package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestFlagsHaveTheDefaultsThatTheirHelpTells(t *testing.T) {
	p := start(t, "manager", "", "--help")
	if code := p.exits(10 * time.Second); code != 0 {
		t.Errorf("--help ends with %d, want 0", code)
	}
	for _, want := range []string{
		`-nginx-image string`, `(default "docker.io/library/nginx:1.30.0")`,
		`-metrics-bind-address string`, `(default ":8080")`,
		`-health-probe-bind-address string`, `(default ":8081")`,
		"-leader-elect\n", "-leader-election-namespace string",
	} {
		if !strings.Contains(p.said.String(), want) {
			t.Errorf("--help does not tell %q", want)
		}
	}
}

func TestACommandLineThatIsWrongEndsWith2(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"an unknown flag":                {[]string{"--nginx-imag=nginx"}, "flag provided but not defined: -nginx-imag"},
		"a value that is none":           {[]string{"--leader-elect=maybe"}, "invalid boolean value"},
		"what looks like a flag's value": {[]string{"--leader-elect", "false", "--nginx-image=nginx"}, `"false"`},
		"a word that belongs to no flag": {[]string{"start"}, `"start"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, "manager", kubeconfig(t, "", ""), tc.args...)
			if code := p.exits(10 * time.Second); code != 2 {
				t.Errorf("it ends with %d, want 2", code)
			}
			if !strings.Contains(p.said.String(), tc.says) {
				t.Errorf("it does not say %s", tc.says)
			}
		})
	}
}

func TestWithoutAnAPIServerItEndsWith1AndSaysWhy(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	_ = closed.Close()
	for name, tc := range map[string]struct{ kubeconfig, says string }{
		"nobody listens there":        {kubeconfig(t, address, ""), address + ": connect: connection refused"},
		"no kubeconfig leads to one":  {"", "find the API server: "},
		"the kubeconfig is not there": {t.TempDir() + "/none", "find the API server: "},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, "manager", tc.kubeconfig)
			if code := p.exits(20 * time.Second); code != 1 {
				t.Errorf("it ends with %d, want 1", code)
			}
			if !strings.Contains(p.said.String(), tc.says) {
				t.Errorf("it does not say %q", tc.says)
			}
		})
	}
}

func TestSIGTERMEndsItWithinTenSecondsWith0(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after func(*line) // the trouble that is there before the operator, and that comes after it began to work
		says          string      // when the signal is sent; empty: as soon as it has connected
		as            string      // the user; empty: one who may do all
	}{
		"the API server answers":                {says: "Starting workers"},
		"the API server hangs":                  {says: "Starting workers", after: (*line).hang},
		"the API server is gone":                {says: "Starting workers", after: (*line).drop},
		"the API server hangs from the start":   {before: (*line).hang},
		"the API server lets it see no objects": {says: "is forbidden", as: "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			way := newLine(t)
			if tc.before != nil {
				tc.before(way)
			}
			p := start(t, "manager", kubeconfig(t, way.address, tc.as), "--leader-elect", "--leader-election-namespace="+newNamespace(t))
			way.used()
			p.says(tc.says)
			if tc.after != nil {
				tc.after(way)
			}
			asked := time.Now()
			p.signal(syscall.SIGTERM)
			if code := p.exits(10 * time.Second); code != 0 {
				t.Errorf("it ends with %d, want 0", code)
			}
			t.Logf("it ended after %s", time.Since(asked))
		})
	}
}

func TestMetricsAndProbesAreServed(t *testing.T) {
	metrics, probes := freeAddress(t), freeAddress(t)
	start(t, "manager", kubeconfig(t, "", ""), "--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes)
	for url, want := range map[string]string{
		"http://" + metrics + "/metrics": "\nmyproxy_status_refused_total 0\n",
		"http://" + probes + "/healthz":  "ok",
		"http://" + probes + "/readyz":   "ok",
	} {
		eventually(t, url+" answers", func() error {
			response, err := fetch(t.Context(), url)
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
				return fmt.Errorf("%s, without %q: %w", response.Status, want, err)
			}
			return nil
		})
	}
}

func TestTheClientHasNoRateLimit(t *testing.T) {
	clients, err := kubernetes.NewForConfig(unlimited(&rest.Config{QPS: 20, Burst: 30})) // as controller-runtime sets them
	if err != nil {
		t.Fatal(err)
	}
	if limiter := clients.AppsV1().RESTClient().GetRateLimiter(); limiter != nil {
		t.Errorf("its limit is %v requests a second", limiter.QPS())
	}
}

// freeAddress is one at which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// line is the way to the API server, which can hang or be cut.
type line struct {
	t        *testing.T
	address  string
	target   string
	listener net.Listener

	mu      sync.Mutex
	open    []net.Conn
	hanging bool
}

func newLine(t *testing.T) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{t: t, listener: listener, address: listener.Addr().String(), target: serverAddress(t)}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			go l.carry(near)
		}
	}()
	t.Cleanup(l.drop)
	return l
}

func (l *line) carry(near net.Conn) {
	far, err := net.Dial("tcp", l.target)
	if err != nil {
		_ = near.Close()
		return
	}
	l.mu.Lock()
	l.open = append(l.open, near, far)
	l.mu.Unlock()
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			buffer := make([]byte, 32<<10)
			for {
				n, err := pair[0].Read(buffer)
				if err != nil {
					break
				}
				l.mu.Lock()
				hanging := l.hanging
				l.mu.Unlock()
				if hanging {
					continue // it is never answered
				}
				if _, err := pair[1].Write(buffer[:n]); err != nil {
					break
				}
			}
			_ = pair[0].Close()
			_ = pair[1].Close()
		}()
	}
}

// hang has nothing answered any more.
func (l *line) hang() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hanging = true
}

// drop ends all connections, and takes no other.
func (l *line) drop() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.open {
		_ = conn.Close()
	}
}

// used waits until there was a connection.
func (l *line) used() {
	l.t.Helper()
	eventually(l.t, "the operator connects", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.open) == 0 {
			return errors.New("it does not")
		}
		return nil
	})
}
