package controller

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// wire is the operator's way to the API server: it counts the requests, and can disturb them.
type wire struct {
	mu       sync.Mutex
	requests []request
	answered map[int]int                  // how many of the writes had an answer of that code
	answer   func(request) *http.Response // not nil: may answer in the API server's place, or change the world before it does
	delays   map[string]time.Duration     // by resource ("" is every one): how late a watch tells its events
	watches  map[*watchBody]string        // those that are open, by resource
	down     bool                         // nobody answers
	next     http.RoundTripper
}

// request is one request of the operator.
type request struct {
	method, path string
	resource     string // as `myproxies`, or `myproxies/status`
	name         string
	query        string
	body         string
}

// String is how tests write a request, as `PATCH deployments shop`.
func (r request) String() string {
	return strings.TrimSpace(r.method + " " + r.resource + " " + r.name)
}

func newWire() *wire {
	return &wire{answered: map[int]int{}, delays: map[string]time.Duration{}, watches: map[*watchBody]string{}}
}

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	w.next = next
	return w
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(httpRequest *http.Request) (*http.Response, error) {
	r := parse(httpRequest)
	w.mu.Lock()
	if w.down {
		w.mu.Unlock()
		return nil, syscall.ECONNREFUSED
	}
	w.requests = append(w.requests, r)
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		if response := answer(r); response != nil {
			response.Request = httpRequest
			return response, nil
		}
	}
	response, err := w.next.RoundTrip(httpRequest)
	if err == nil && r.method != http.MethodGet {
		w.mu.Lock()
		w.answered[response.StatusCode]++
		w.mu.Unlock()
	}
	if err == nil && strings.Contains(r.query, "watch=true") && response.StatusCode == http.StatusOK {
		response.Body = w.watch(r.resource, response.Body)
	}
	return response, err
}

// parse reads /api/v1/namespaces/NS/RESOURCE[/NAME[/SUBRESOURCE]] and its likes.
func parse(httpRequest *http.Request) request {
	r := request{method: httpRequest.Method, path: httpRequest.URL.Path, query: httpRequest.URL.RawQuery}
	if httpRequest.Body != nil {
		body, _ := io.ReadAll(httpRequest.Body)
		r.body = string(body)
		httpRequest.Body = io.NopCloser(bytes.NewReader(body))
	}
	parts := strings.Split(strings.Trim(r.path, "/"), "/")
	skip := map[string]int{"api": 2, "apis": 3}[parts[0]]
	if skip == 0 || len(parts) <= skip {
		return r // discovery
	}
	parts = parts[skip:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	r.resource = parts[0]
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.resource += "/" + parts[2]
	}
	return r
}

// writes are the requests so far that may change something, as strings.
func (w *wire) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, r := range w.requests {
		if r.method != http.MethodGet {
			all = append(all, r.String())
		}
	}
	return all
}

// codes are how many writes the API server answered with which code.
func (w *wire) codes() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.answered)
}

// takeWrites are the writes since the last time.
func (w *wire) takeWrites() []string {
	all := w.writes()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = nil
	return all
}

// disturb has a function see each request before the API server; what it returns is the answer, nil leaves the request alone.
// A nil function disturbs nothing.
func (w *wire) disturb(answer func(request) *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// delay has the watches of a resource ("" is all) tell their events late, those that are open too.
func (w *wire) delay(resource string, by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delays[resource] = by
}

// goDown has nobody answer, and ends the watches, as if the API server were gone; or has it come back.
func (w *wire) goDown(down bool) {
	w.mu.Lock()
	w.down = down
	w.mu.Unlock()
	w.cut("")
}

// cut ends the open watches of a resource ("" is all).
func (w *wire) cut(resource string) {
	w.mu.Lock()
	var open []*watchBody
	for body, of := range w.watches {
		if resource == "" || resource == of {
			open = append(open, body)
		}
	}
	w.mu.Unlock()
	for _, body := range open {
		_ = body.Close()
	}
}

// status is an API server's answer of that code.
func apiStatus(code int, reason, message string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":%q}`, code, reason, message)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// watchBody is the stream of a watch, which hands on late what it reads at once: a cache that is behind, not a slow network.
type watchBody struct {
	io.ReadCloser
	chunks  chan chunk
	pending []byte
	delay   func() time.Duration
	closed  chan struct{}
	close   sync.Once
	forget  func()
}

type chunk struct {
	data []byte
	at   time.Time
}

func (w *wire) watch(resource string, stream io.ReadCloser) io.ReadCloser {
	body := &watchBody{ReadCloser: stream, chunks: make(chan chunk, 1<<16), closed: make(chan struct{})}
	body.delay = func() time.Duration {
		w.mu.Lock()
		defer w.mu.Unlock()
		return max(w.delays[resource], w.delays[""])
	}
	body.forget = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watches, body)
	}
	w.mu.Lock()
	w.watches[body] = resource
	w.mu.Unlock()
	go func() {
		defer close(body.chunks)
		for {
			buffer := make([]byte, 32<<10)
			n, err := stream.Read(buffer)
			if n > 0 {
				body.chunks <- chunk{buffer[:n], time.Now()}
			}
			if err != nil {
				return
			}
		}
	}()
	return body
}

// Read implements io.Reader.
func (b *watchBody) Read(p []byte) (int, error) {
	if len(b.pending) == 0 {
		select {
		case next, open := <-b.chunks:
			if !open {
				return 0, io.EOF
			}
			select {
			case <-time.After(time.Until(next.at.Add(b.delay()))):
			case <-b.closed:
				return 0, io.EOF
			}
			b.pending = next.data
		case <-b.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, b.pending)
	b.pending = b.pending[n:]
	return n, nil
}

// Close implements io.Closer.
func (b *watchBody) Close() error {
	b.close.Do(func() {
		close(b.closed)
		b.forget()
	})
	return b.ReadCloser.Close()
}

// runtimeObjects are the objects of a list.
func runtimeObjects(list client.ObjectList) ([]client.Object, error) {
	items, err := meta.ExtractList(list)
	var all []client.Object
	for _, item := range items {
		all = append(all, item.(client.Object))
	}
	return all, err
}
