package controller

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"myproxy.dev/operator/api/v1alpha1"
	gatewayac "myproxy.dev/operator/applyconfigurations/api/v1alpha1"
)

const (
	// largeFleet is how many pods a fleet may have before its status is so large that it is written at most once in
	// largeFleetPause.
	largeFleet      = 1000
	largeFleetPause = 500 * time.Millisecond
)

// statusWrite is one apply of a status: what is sent, and, apart, what the API server answered.
type statusWrite struct {
	*gatewayac.MyProxyApplyConfiguration
	status *gatewayac.MyProxyStatusApplyConfiguration
	body   []byte
	intent string // the hash of body
	answer v1alpha1.MyProxy
}

func newStatusWrite(proxy *v1alpha1.MyProxy, status *gatewayac.MyProxyStatusApplyConfiguration) *statusWrite {
	write := &statusWrite{MyProxyApplyConfiguration: gatewayac.MyProxy(proxy.Name, proxy.Namespace), status: status}
	write.body = encode(struct {
		*gatewayac.MyProxyApplyConfiguration
		Status wholeStatus `json:"status"`
	}{write.MyProxyApplyConfiguration, wholeStatus{status}})
	write.intent = hash(write.body)
	return write
}

// MarshalJSON is what is sent.
func (w *statusWrite) MarshalJSON() ([]byte, error) { return w.body, nil }

// UnmarshalJSON takes the API server's answer.
func (w *statusWrite) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &w.answer) }

// record is what to remember of the answer.
func (w *statusWrite) record(now time.Time) statusRecord {
	return statusRecord{
		intent:          w.intent,
		content:         contentOf(w.answer.Status),
		resourceVersion: w.answer.ResourceVersion,
		at:              now,
		configHash:      w.answer.Status.ConfigHash,
		conditions:      w.answer.Status.Conditions,
	}
}

// spares tells whether the write can be spared, and after how long to look again; zero, if an event will tell.
func (last statusRecord) spares(write *statusWrite, proxy *v1alpha1.MyProxy, now time.Time) (retryIn time.Duration, spared bool) {
	same, dueAt := last.intent == write.intent, last.at.Add(largeFleetPause)
	switch {
	case last.superseded:
		return 0, true
	case same && now.Before(last.retryAt):
		return last.retryAt.Sub(now), true
	case same && last.retryAt.IsZero() && last.stands(proxy):
		return 0, true
	case len(write.status.PodNames) > largeFleet && now.Before(dueAt):
		return dueAt.Sub(now), true
	default:
		return 0, false
	}
}

// stands tells whether the MyProxy's status is the one that was answered, or only the cache is older.
func (last statusRecord) stands(proxy *v1alpha1.MyProxy) bool {
	return older(proxy.ResourceVersion, last.resourceVersion) || contentOf(proxy.Status) == last.content
}

// stale is the index of the first condition of our types that the status does not have; -1, if there is none.
func stale(live []metav1.Condition, status *gatewayac.MyProxyStatusApplyConfiguration) int {
	return slices.IndexFunc(live, func(condition metav1.Condition) bool {
		return slices.Contains(conditionTypes, condition.Type) && !has(status, condition.Type)
	})
}

func has(status *gatewayac.MyProxyStatusApplyConfiguration, kind string) bool {
	for _, condition := range status.Conditions {
		if *condition.Type == kind {
			return true
		}
	}
	return false
}

// wholeStatus sends empty lists too. The generated configuration drops them, and then what somebody forged into one stays.
type wholeStatus struct {
	*gatewayac.MyProxyStatusApplyConfiguration
}

// MarshalJSON is the configuration's, with its lists.
func (s wholeStatus) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		*gatewayac.MyProxyStatusApplyConfiguration
		PodNames        []string                                     `json:"pod_names"`
		UnavailablePods []gatewayac.UnavailablePodApplyConfiguration `json:"unavailablePods"`
		Addresses       []gatewayac.AddressApplyConfiguration        `json:"addresses"`
	}{
		s.MyProxyStatusApplyConfiguration, notNil(s.PodNames), notNil(s.UnavailablePods), notNil(s.Addresses),
	})
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// contentOf is the hash of a status as it is stored. It tells a list that is empty from one that is not there.
func contentOf(status v1alpha1.MyProxyStatus) string {
	return hash(encode(struct {
		v1alpha1.MyProxyStatus
		PodNames        []string                  `json:"pod_names"`
		UnavailablePods []v1alpha1.UnavailablePod `json:"unavailablePods"`
		Addresses       []v1alpha1.Address        `json:"addresses"`
	}{status, status.PodNames, status.UnavailablePods, status.Addresses}))
}
