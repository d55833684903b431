package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"myproxy.dev/operator/api/v1alpha1"
)

// leaseDuration is for how long a leader that died is waited for, with a little for the look at it every two seconds.
const leaseDuration = 15*time.Second + 3*time.Second

func TestWhenTheLeaderIsKilledTheOtherTakesOverAndNothingGoesBack(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	flags := []string{"--leader-elect", "--leader-election-namespace=" + namespace}
	first := start(t, "the first", kubeconfig(t, "", ""), flags...)
	first.says("Starting workers")
	metrics := freeAddress(t)
	second := start(t, "the second", kubeconfig(t, "", ""), append(flags, "--metrics-bind-address="+metrics)...)
	second.says("Attempting to acquire leader lease")

	still, busy := newFleet(t, c, namespace, "still"), newFleet(t, c, namespace, "busy")
	still.pod("still-1")
	busy.pod("busy-1")
	still.waitFor("still-1")
	busy.waitFor("busy-1")
	told := busy.watch()
	before := still.versions()

	killed := time.Now()
	first.signal(syscall.SIGKILL)
	<-first.ended
	busy.pod("busy-2") // while nobody leads
	busy.waitFor("busy-1", "busy-2")
	took := time.Since(killed)
	t.Logf("the second took over %s after the first was killed", took)
	if took > leaseDuration {
		t.Errorf("it took over after %s, want %s at most", took, leaseDuration)
	}
	eventually(t, "the second has looked at both fleets", func() error { return idleAfter(t.Context(), metrics, 2) })

	if after := still.versions(); !maps.Equal(before, after) {
		t.Errorf("taking over changed what was as it should be: before %v, then %v", before, after)
	}
	last := []string{"busy-1"}
	for len(last) < 2 {
		event := <-told.ResultChan()
		names := event.Object.(*v1alpha1.MyProxy).Status.PodNames
		if len(names) < len(last) || !slices.Equal(names[:len(last)], last) {
			t.Errorf("the status went from %q back to %q", last, names)
		}
		last = names
	}
	if second.said.String() == "" || regexp.MustCompile(`"level":"error"`).MatchString(second.said.String()) {
		t.Errorf("the second logged an error:\n%s", second.said.String())
	}
}

// idleAfter fails until an operator has made that many passes, and has none to make.
func idleAfter(ctx context.Context, metrics string, passes int) error {
	response, err := fetch(ctx, "http://"+metrics+"/metrics")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	sum := func(metric string) (sum int) {
		for _, value := range regexp.MustCompile(`(?m)^`+metric+`\{[^}]*"myproxy"[^}]*\} (\d+)$`).FindAllStringSubmatch(string(body), -1) {
			n, _ := strconv.Atoi(value[1])
			sum += n
		}
		return sum
	}
	made, due := sum("controller_runtime_reconcile_total"), sum("workqueue_depth")+sum("controller_runtime_active_workers")
	if made < passes || due > 0 {
		return fmt.Errorf("it made %d passes, and %d are due", made, due)
	}
	return nil
}

// fleet is a MyProxy, for which the test plays the Deployment controller and the kubelet.
type fleet struct {
	t          *testing.T
	client     client.WithWatch
	key        client.ObjectKey
	replicaSet *appsv1.ReplicaSet
}

func newFleet(t *testing.T, c client.WithWatch, namespace, name string) *fleet {
	t.Helper()
	f := &fleet{t: t, client: c, key: client.ObjectKey{Namespace: namespace, Name: name}}
	f.create(&v1alpha1.MyProxy{}, nil, name)
	deployment := &appsv1.Deployment{}
	eventually(t, "there is a Deployment "+name, func() error { return c.Get(t.Context(), f.key, deployment) })
	f.replicaSet = &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: deployment.Spec.Selector, Template: deployment.Spec.Template}}
	f.replicaSet.Labels = deployment.Spec.Template.Labels
	f.create(f.replicaSet, deployment, name+"-r1")
	return f
}

func (f *fleet) create(object, owner client.Object, name string) {
	f.t.Helper()
	object.SetNamespace(f.key.Namespace)
	object.SetName(name)
	if owner != nil {
		if err := controllerutil.SetControllerReference(owner, object, f.client.Scheme()); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.client.Create(f.t.Context(), object); err != nil {
		f.t.Fatal(err)
	}
}

// pod makes a pod of the fleet that serves.
func (f *fleet) pod(name string) {
	f.t.Helper()
	pod := &corev1.Pod{Spec: f.replicaSet.Spec.Template.Spec}
	pod.Labels = f.replicaSet.Labels
	f.create(pod, f.replicaSet, name)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := f.client.Status().Update(f.t.Context(), pod); err != nil {
		f.t.Fatal(err)
	}
}

// waitFor waits until the status has exactly these pods, that serve.
func (f *fleet) waitFor(names ...string) {
	f.t.Helper()
	eventually(f.t, fmt.Sprintf("%s has the pods %q", f.key.Name, names), func() error {
		status := f.proxy().Status
		if !slices.Equal(status.PodNames, names) || status.ReadyReplicas == nil || int(*status.ReadyReplicas) != len(names) {
			return fmt.Errorf("it has %q; %+v", status.PodNames, status.Conditions)
		}
		return nil
	})
}

func (f *fleet) proxy() *v1alpha1.MyProxy {
	f.t.Helper()
	proxy := &v1alpha1.MyProxy{}
	if err := f.client.Get(f.t.Context(), f.key, proxy); err != nil {
		f.t.Fatal(err)
	}
	return proxy
}

// watch tells the changes of the MyProxy from now on.
func (f *fleet) watch() watch.Interface {
	f.t.Helper()
	told, err := f.client.Watch(f.t.Context(), &v1alpha1.MyProxyList{}, client.InNamespace(f.key.Namespace),
		client.MatchingFields{"metadata.name": f.key.Name}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: f.proxy().ResourceVersion}})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(told.Stop)
	return told
}

// versions are the resourceVersions of the MyProxy and its children.
func (f *fleet) versions() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	configMap := "still-" + f.proxy().Status.ConfigHash
	for name, object := range map[string]client.Object{
		"MyProxy": &v1alpha1.MyProxy{}, "Deployment": &appsv1.Deployment{}, "Service": &corev1.Service{}, configMap: &corev1.ConfigMap{},
	} {
		key := f.key
		if name == configMap {
			key.Name = configMap
		}
		if err := f.client.Get(f.t.Context(), key, object); err != nil {
			f.t.Fatal(err)
		}
		all[name] = object.GetResourceVersion()
	}
	return all
}
