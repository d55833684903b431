package controller

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"myproxy.dev/operator/api/v1alpha1"
)

func configMapMeta(uid types.UID, resourceVersion string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: uid, ResourceVersion: resourceVersion}}
}

func TestAnAnswerCountsWhileTheCacheIsOlder(t *testing.T) {
	answered := record{answer: configMapMeta("a", "20"), at: epoch}
	gone := answered
	gone.gone = "a"
	for name, tc := range map[string]struct {
		record record
		cached metav1.Object
		after  time.Duration
		want   bool
	}{
		"nothing was answered":                   {record{}, nil, 0, false},
		"no cache has it yet":                    {answered, nil, lapse - 1, true},
		"no cache has it after a while":          {answered, nil, lapse, false},
		"it was seen to go":                      {gone, nil, 0, false},
		"the cache is older":                     {answered, configMapMeta("a", "9"), time.Hour, true},
		"the cache has the answer":               {answered, configMapMeta("a", "20"), 0, false},
		"the cache is newer":                     {answered, configMapMeta("a", "100"), 0, false},
		"versions that can't be compared":        {answered, configMapMeta("a", "x"), 0, false},
		"the cache has an older one of the name": {answered, configMapMeta("b", "9"), 0, true},
	} {
		if got := tc.record.counts(tc.cached, epoch.Add(tc.after)); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

func TestAChildThatLostItsLabelAndHasItAgainNeverWent(t *testing.T) {
	f := (&memory{}).of(types.NamespacedName{Name: "shop"}, "proxy")
	id := childID{kindConfigMap, "c"}
	f.put(id, record{intent: "i", answer: configMapMeta("a", "20"), at: epoch})
	f.goes(id, "a")
	if f.get(id).counts(nil, epoch) {
		t.Error("an answer about what went counts")
	}
	f.comes(id, "a")
	if !f.get(id).counts(nil, epoch) {
		t.Error("an answer about what is there again does not count")
	}
	f.goes(id, "a")
	f.put(id, record{intent: "i", answer: configMapMeta("a", "21"), at: epoch}) // of an apply that was in flight
	if f.get(id).counts(nil, epoch) {
		t.Error("an answer that came after the deletion counts")
	}
}

func TestAnotherMyProxyOfTheNameStartsWithoutMemory(t *testing.T) {
	m, name := &memory{}, types.NamespacedName{Namespace: "ns", Name: "shop"}
	m.of(name, "first").put(childID{kindConfigMap, "c"}, record{intent: "i"})
	if got := m.of(name, "first").get(childID{kindConfigMap, "c"}).intent; got != "i" {
		t.Errorf("the first remembers %q", got)
	}
	if got := m.of(name, "second").get(childID{kindConfigMap, "c"}).intent; got != "" {
		t.Errorf("the second remembers %q", got)
	}
}

func TestWhatTheAPIServerAnswersDecidesHowItIsToldAndRetried(t *testing.T) {
	id := childID{kindDeployment, "shop"}
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	invalid := func(path string) error {
		return apierrors.NewInvalid(kindDeployment.GroupKind(), "shop", field.ErrorList{field.Invalid(field.NewPath(path), "x", "no")})
	}
	for name, tc := range map[string]struct {
		err       error
		reason    string
		message   string
		backsOff  bool
		retriesIn [2]time.Duration
	}{
		"conflict":    {err: apierrors.NewConflict(deployments, "shop", errors.New("uid")), retriesIn: [2]time.Duration{raceRetry, raceRetry}},
		"invalid uid": {err: invalid("metadata.uid"), retriesIn: [2]time.Duration{raceRetry, raceRetry}},
		"invalid": {
			err: invalid("spec.x"), reason: v1alpha1.ReasonRefused, retriesIn: [2]time.Duration{time.Minute, 5 * time.Minute},
			message: `Deployment shop: Deployment.apps "shop" is invalid: spec.x: Invalid value: "x": no`,
		},
		"a field that the schema has not": {
			err:    apierrors.NewInternalError(errors.New(".spec.x: field not declared in schema")),
			reason: v1alpha1.ReasonRefused, retriesIn: [2]time.Duration{time.Minute, 5 * time.Minute},
			message: "Deployment shop: Internal error occurred: .spec.x: field not declared in schema",
		},
		"forbidden": {
			err: apierrors.NewForbidden(deployments, "shop", errors.New("exceeded quota")), reason: v1alpha1.ReasonRefused, backsOff: true,
			message: `Deployment shop: deployments.apps "shop" is forbidden: exceeded quota`,
		},
		"overload": {
			err: apierrors.NewTooManyRequests("slow down for 3s", 3), reason: v1alpha1.ReasonApplyFailed, backsOff: true,
			message: "Deployment shop: the API server did not take it yet (TooManyRequests)",
		},
		"no answer": {
			err: errors.New("read tcp 127.0.0.1:4711->127.0.0.1:6443: connection reset"), reason: v1alpha1.ReasonApplyFailed, backsOff: true,
			message: "Deployment shop: the API server did not take it yet",
		},
	} {
		f := failureOf(id, tc.err)
		if f.reason != tc.reason || f.message != tc.message || (f.err != nil) != tc.backsOff || f.retryIn < tc.retriesIn[0] || f.retryIn > tc.retriesIn[1] {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if f := failureOf(id, nil); f != nil {
		t.Errorf("no error is the failure %+v", f)
	}
}

func TestWhoControlsTheDeploymentHasTheFleetsNameElseTheOlderElseTheSmallerUID(t *testing.T) {
	proxy := func(uid types.UID, age time.Duration) v1alpha1.MyProxy {
		return v1alpha1.MyProxy{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid, CreationTimestamp: metav1.NewTime(epoch.Add(-age))}}
	}
	deploymentOf := func(uid types.UID) metav1.Object {
		return &metav1.ObjectMeta{OwnerReferences: controlledBy(uid)}
	}
	dying := proxy("a", 2*time.Hour)
	dying.DeletionTimestamp = new(metav1.NewTime(epoch))
	for name, tc := range map[string]struct {
		claims     []v1alpha1.MyProxy
		deployment metav1.Object
		want       string // of the rival of "b", an hour old
	}{
		"alone":                                 {nil, nil, ""},
		"an older one":                          {[]v1alpha1.MyProxy{proxy("c", 2*time.Hour)}, nil, "c"},
		"a younger one":                         {[]v1alpha1.MyProxy{proxy("c", time.Minute)}, nil, ""},
		"a younger one that has it":             {[]v1alpha1.MyProxy{proxy("c", time.Minute)}, deploymentOf("c"), "c"},
		"an older one, but it is ours":          {[]v1alpha1.MyProxy{proxy("c", 2*time.Hour)}, deploymentOf("b"), ""},
		"as old, with a smaller uid":            {[]v1alpha1.MyProxy{proxy("a", time.Hour)}, nil, "a"},
		"as old, with a greater uid":            {[]v1alpha1.MyProxy{proxy("c", time.Hour)}, nil, ""},
		"an older one that goes":                {[]v1alpha1.MyProxy{dying}, nil, ""},
		"an older one that goes, but still has": {[]v1alpha1.MyProxy{dying}, deploymentOf("a"), "a"},
	} {
		self := proxy("b", time.Hour)
		got := ""
		if found := rival(&self, append(tc.claims, self), tc.deployment); found != nil {
			got = found.Name
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
