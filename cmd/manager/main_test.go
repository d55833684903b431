package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"myproxy.dev/operator/api/v1alpha1"
)

// asManager in its environment makes the test's program the operator's: so the tests see real processes, and nothing is built twice.
const asManager = "MYPROXY_TEST_AS_MANAGER"

// server is a real API server, for all tests of the package.
var server = &envtest.Environment{
	CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
	ErrorIfCRDPathMissing: true,
}

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
		return
	}
	os.Exit(withServer(m))
}

func withServer(m *testing.M) int {
	if _, err := server.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start etcd and the API server (`make test` fetches or builds them):", err)
		return 1
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the API server:", err)
		}
	}()
	return m.Run()
}

// newClient is a user's.
func newClient(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(server.Config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newNamespace is one of the test's own: leases of other tests' operators that were killed are waited for otherwise.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := newClient(t).Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// kubeconfig is a file that leads to the API server, by way of that address and as that user, if they are given.
func kubeconfig(t *testing.T, address, user string) string {
	t.Helper()
	config, err := clientcmd.Load(server.KubeConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		if address != "" {
			cluster.Server = "https://" + address
		}
	}
	for _, auth := range config.AuthInfos {
		auth.Impersonate = user
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

func serverAddress(t *testing.T) string {
	t.Helper()
	host, err := url.Parse(server.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return host.Host
}

// process is a running operator.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	said  output
	ended chan struct{} // closed
}

// start runs the operator until the test ends. It serves neither metrics nor probes, but where the arguments say so.
func start(t *testing.T, name, kubeconfig string, args ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, ended: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], append([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}, args...)...)
	p.cmd.Env = []string{asManager + "=1", "KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its state
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.said.String())
		}
	})
	return p
}

func (p *process) signal(signal syscall.Signal) {
	_ = p.cmd.Process.Signal(signal) // one that has ended takes none
}

// exits waits for the end of the process, and returns its exit code.
func (p *process) exits(most time.Duration) int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(most):
		p.t.Fatalf("%s did not end within %s", p.name, most)
		return 0
	}
}

// says waits until the process has logged a text.
func (p *process) says(text string) {
	p.t.Helper()
	eventually(p.t, fmt.Sprintf("%s says %q", p.name, text), func() error {
		if !strings.Contains(p.said.String(), text) {
			return errors.New("it does not")
		}
		return nil
	})
}

// output is what a process writes.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String is all that was written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// eventually polls until the check passes, for half a minute at most.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within half a minute: %s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond) // between two polls
	}
}

// fetch is the answer to a GET.
func fetch(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}
