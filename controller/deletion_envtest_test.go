package controller

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"myproxy.dev/operator/api/v1alpha1"
)

// There is no garbage collector here: the tests do what it does.

// delete deletes a MyProxy: "Background", "Foreground" or "Orphan".
func (c *cluster) delete(name string, propagation metav1.DeletionPropagation) {
	c.t.Helper()
	if err := c.client.Delete(c.t.Context(), c.proxy(name), client.PropagationPolicy(propagation)); err != nil {
		c.t.Fatal(err)
	}
}

// children are what the deletion of the fleet shop's MyProxy leaves to the garbage collector.
func (c *cluster) children() []client.Object {
	c.t.Helper()
	var all []client.Object
	configMaps := &corev1.ConfigMapList{}
	if err := c.client.List(c.t.Context(), configMaps, client.InNamespace(c.namespace), client.MatchingLabels{labelFleet: "shop"}); err != nil {
		c.t.Fatal(err)
	}
	for i := range configMaps.Items {
		all = append(all, &configMaps.Items[i])
	}
	return append(all, c.service(), c.deployment("shop"))
}

// collect deletes the children, as the garbage collector does after a background deletion.
func (c *cluster) collect(children []client.Object) {
	c.t.Helper()
	for _, child := range children {
		if err := c.client.Delete(c.t.Context(), child, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			c.t.Fatal(err)
		}
		c.patchIfThere(child, `{"metadata":{"finalizers":null}}`)
	}
}

func (c *cluster) patchIfThere(object client.Object, patch string) {
	c.t.Helper()
	err := c.client.Patch(c.t.Context(), object, client.RawPatch("application/merge-patch+json", []byte(patch)))
	if client.IgnoreNotFound(err) != nil {
		c.t.Fatal(err)
	}
}

// gone fails if one of the objects is there, or another one in its place.
func (c *cluster) gone(children []client.Object) {
	c.t.Helper()
	for _, child := range children {
		if err := c.client.Get(c.t.Context(), client.ObjectKeyFromObject(child), child); !apierrors.IsNotFound(err) {
			c.t.Errorf("%s %s rose from the dead: %v (%v)", kindOf(child), child.GetName(), child.GetOwnerReferences(), err)
		}
	}
}

func TestNothingRisesFromTheDead(t *testing.T) {
	for what, late := range map[string]string{
		"with caches in time": "none", "with all caches late": "", "with the MyProxies late": "myproxies", "with the children late": "services",
	} {
		t.Run(what, func(t *testing.T) {
			o := newCluster(t).startOperator()
			o.apply("shop", "replicas: 1")
			o.settle()
			children := o.children()
			o.delay(late, 2*time.Second)
			o.delete("shop", metav1.DeletePropagationBackground)
			o.collect(children)
			o.settle()
			o.gone(children)
		})
	}
}

func TestATerminatingMyProxyTouchesNoChildAndItsStatusGoesOn(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	set := o.replicaSet(o.deployment("shop"), 1)
	pod := o.readyPod(set, "shop-1")
	o.wantPods("shop", 1, "shop-1")
	o.delete("shop", metav1.DeletePropagationForeground)
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTerminating)
	o.wantCondition("shop", v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonTerminating)
	o.wantCondition("shop", v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonServing)
	o.settle()
	o.takeWrites()
	service := o.service()
	if err := o.client.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	o.deletePod(pod)
	o.wantPods("shop", 0)
	o.settle()
	for _, write := range o.takeWrites() {
		if write != statusWriteOfShop {
			t.Errorf("it wrote %s", write)
		}
	}
	o.gone([]client.Object{service})
}

func TestNoChildGetsItsDeadOwnerBack(t *testing.T) {
	for what, late := range map[string]string{"with caches in time": "none", "with all caches late": "", "with the MyProxies late": "myproxies"} {
		t.Run(what, func(t *testing.T) {
			o := newCluster(t).startOperator()
			o.apply("shop", "replicas: 1")
			o.settle()
			dead := o.proxy("shop").UID
			o.delay(late, 2*time.Second)
			o.delete("shop", metav1.DeletePropagationOrphan)
			children := o.children()
			for _, child := range children {
				o.patch(child, "gc", `{"metadata":{"ownerReferences":null}}`)
			}
			o.patch(o.proxy("shop"), "gc", `{"metadata":{"finalizers":null}}`)
			o.settle()
			for _, child := range o.children() {
				if owner := metav1.GetControllerOf(child); owner != nil {
					t.Errorf("%s got owner %s back (the dead one is %s)", child.GetName(), owner.UID, dead)
				}
			}
			if t.Failed() {
				return
			}
			o.apply("shop", "replicas: 2")
			o.eventually("a new MyProxy of that name adopts them", func() error {
				for i, child := range o.children() {
					if !metav1.IsControlledBy(child, o.proxy("shop")) || child.GetUID() != children[i].GetUID() {
						return fmt.Errorf("%s is owned by %v", child.GetName(), child.GetOwnerReferences())
					}
				}
				return nil
			})
		})
	}
}

func TestAMyProxyMadeAnewDoesNotKeepTheOldOnesStatus(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.settle()
	children := o.children()
	set := o.replicaSet(o.deployment("shop"), 1)
	release, held := make(chan struct{}), make(chan struct{}, 9)
	o.disturb(func(r request) *http.Response {
		if r.String() == statusWriteOfShop {
			held <- struct{}{}
			<-release
		}
		return nil
	})
	o.readyPod(set, "shop-1")
	<-held
	o.delete("shop", metav1.DeletePropagationBackground)
	o.collect(children)
	o.apply("shop", "replicas: 0")
	o.disturb(nil)
	close(release)
	o.wantPods("shop", 0)
	o.wantCondition("shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
	o.settle()
	if got := o.proxy("shop").Status.PodNames; len(got) != 0 {
		t.Errorf("pod_names are %q", got)
	}
	for _, child := range o.children() {
		if !metav1.IsControlledBy(child, o.proxy("shop")) {
			t.Errorf("%s is owned by %v", child.GetName(), child.GetOwnerReferences())
		}
	}
}

func TestAnApplyDoesNotBringBackAChildThatWasDeletedAfterItWasObserved(t *testing.T) {
	o := newCluster(t).startOperator()
	o.apply("shop", "replicas: 1")
	o.settle()
	first := o.deployment("shop")
	release, held := make(chan struct{}), make(chan struct{}, 9)
	o.disturb(func(r request) *http.Response {
		if r.String() == "PATCH deployments shop" {
			held <- struct{}{}
			<-release
		}
		return nil
	})
	o.apply("shop", "replicas: 2")
	<-held
	if err := o.client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	o.disturb(nil)
	before := o.codes()
	close(release)
	o.eventually("it comes back", func() error {
		if got := o.deployment("shop"); got.UID == first.UID {
			return errors.New("it is the one that was deleted")
		}
		return nil
	})
	o.settle()
	if second := o.deployment("shop"); second.UID == first.UID || *second.Spec.Replicas != 2 {
		t.Errorf("it is %+v", second)
	}
	if o.codes()[http.StatusConflict] == before[http.StatusConflict] {
		t.Error("the apply that was held was not refused")
	}
}

func TestOfTwoThatClaimAFleetTheOneThatHasItKeepsIt(t *testing.T) {
	o := newCluster(t).startOperator()
	first := o.apply("one", "{name: shop, replicas: 0}")
	o.wantCondition("one", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaledToZero)
	o.apply("two", "{name: shop, replicas: 3}")
	told := o.wantCondition("two", v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
	if want := "MyProxy one has the fleet name shop"; told.Message != want {
		t.Errorf("it says %q, want %q", told.Message, want)
	}
	o.settle()
	o.takeWrites()
	for i := range 10 {
		o.patch(o.proxy("one"), "test", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		o.patch(o.proxy("two"), "test", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
	}
	o.wantWrites("both are touched")
	children := o.children()
	for _, child := range children {
		if !metav1.IsControlledBy(child, first) {
			t.Errorf("%s is owned by %v", child.GetName(), child.GetOwnerReferences())
		}
	}
	o.delete("one", metav1.DeletePropagationBackground)
	o.collect(children)
	o.eventually("the other takes over", func() error {
		deployment := o.deployment("shop")
		if !metav1.IsControlledBy(deployment, o.proxy("two")) || *deployment.Spec.Replicas != 3 {
			return fmt.Errorf("it is %+v", deployment.ObjectMeta)
		}
		return nil
	})
	o.wantCondition("two", v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
}

func TestAConfigurationIsDeletedOnceNothingNamesIt(t *testing.T) {
	o := newCluster(t).startOperator()
	names := func() (all []string) {
		list := &corev1.ConfigMapList{}
		if err := o.client.List(t.Context(), list, client.InNamespace(o.namespace), client.HasLabels{labelFleet}); err != nil {
			t.Fatal(err)
		}
		for _, configMap := range list.Items {
			all = append(all, configMap.Name)
		}
		return all
	}
	o.apply("shop", "replicas: 1")
	first := o.replicaSet(o.deployment("shop"), 1)
	pod := o.readyPod(first, "shop-1")
	o.wantPods("shop", 1, "shop-1")
	one := names()[0]
	o.apply("shop", "{replicas: 1, resources: {limits: {cpu: 7}}}") // seven workers: another configuration
	o.eventually("the Deployment is of the new one", func() error {
		if got := o.proxy("shop").Status.ConfigHash; "shop-"+got == one {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
	o.settle()
	o.replicaSet(o.deployment("shop"), 2)
	o.settle()
	if got := names(); len(got) != 2 || !slices.Contains(got, one) {
		t.Fatalf("there are %q, want %s and the new one: a ReplicaSet and a pod name it", got, one)
	}
	o.takeWrites()
	if err := o.client.Delete(t.Context(), first, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	o.settle()
	if got := names(); !slices.Contains(got, one) {
		t.Fatalf("there are %q: a pod names %s", got, one)
	}
	o.deletePod(pod)
	o.eventually("it is deleted", func() error {
		if got := names(); len(got) != 1 || slices.Contains(got, one) {
			return fmt.Errorf("there are %q", got)
		}
		return nil
	})
	o.settle()
	if got := o.takeWrites(); occurrences(got, "DELETE configmaps "+one) != 1 {
		t.Errorf("it wrote %q, want one deletion", got)
	}
}

func occurrences(all []string, one string) (n int) {
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}
