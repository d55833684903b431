package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// apiServer is a real API server behind a proxy that notes what is asked of it.
type apiServer struct {
	config     *rest.Config // its administrator's, past the proxy
	kubeconfig string       // a file that leads to the proxy
	cache      string       // the discovery cache of every run of the plugin

	mu       sync.Mutex
	requests []string // method and path, such as "GET /api"
}

// startServer fails where KUBEBUILDER_ASSETS does not lead to the programs.
func startServer(t *testing.T) *apiServer {
	t.Helper()
	environment := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start the API server (KUBEBUILDER_ASSETS is %q): %v", os.Getenv("KUBEBUILDER_ASSETS"), err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	server := &apiServer{config: config, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), cache: t.TempDir()}
	server.proxy(t)
	return server
}

// proxy starts the proxy and writes the kubeconfig that leads there.
func (s *apiServer) proxy(t *testing.T) {
	t.Helper()
	target, err := url.Parse(s.config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	if proxy.Transport, err = rest.TransportFor(s.config); err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)

	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: listener.URL}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", Namespace: "shops"}
	kubeconfig.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*kubeconfig, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// asked returns the requests since the last call of it, without those of discovery.
func (s *apiServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var requests []string
	for _, request := range s.requests {
		// Discovery asks for /api, /apis, and each group version below them; an object's path is longer.
		if strings.Count(request, "/") > 3 {
			requests = append(requests, request)
		}
	}
	s.requests = nil
	return requests
}

// owners runs the plugin's command line a hundred days later, so that every age in the output is 100d.
func (s *apiServer) owners(args ...string) (code int, stdout, stderr string) {
	return owners(append([]string{"--kubeconfig", s.kubeconfig, "--cache-dir", s.cache}, args...)...)
}

func owners(args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	later := clocktesting.NewFakePassiveClock(time.Now().Add(100*24*time.Hour + time.Hour))
	code = run(append([]string{"owners"}, args...), streams, later)
	return code, out.String(), errOut.String()
}
