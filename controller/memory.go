package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"myproxy.dev/operator/api/v1alpha1"
)

// memory is what was asked of the API server and what it answered, so that nothing is asked twice, and so that what this
// operator did is known before the caches show it. It is a memory of requests, not a comparison of objects: to forget it costs requests,
// never correctness.
type memory struct {
	mu     sync.Mutex
	fleets map[types.NamespacedName]*fleetMemory
}

// fleetMemory is what concerns one MyProxy. Its worker and the event handlers share it.
type fleetMemory struct {
	mu       sync.Mutex
	proxy    types.UID
	children map[childID]record
	status   statusRecord // the worker's alone
}

// record is the last apply of a child.
type record struct {
	intent  string        // the hash of what was applied
	answer  metav1.Object // what the server made of it, stripped as the cache's objects are; nil if it refused
	at      time.Time     // of the answer
	refused *failure      // why it was refused; nil if it was not
	retryAt time.Time     // when to try what was refused again
	gone    types.UID     // the child that was seen to go last: an answer about it is void
}

// statusRecord is the last apply of the status.
type statusRecord struct {
	intent          string
	content         string // the hash of the answer's .status
	resourceVersion string
	at              time.Time
	configHash      string
	conditions      []metav1.Condition // the answer's
	retryAt         time.Time          // not zero: it was refused, and is tried again then
	superseded      bool               // another MyProxy has the name: this one's status is nobody's
}

// lapse is for how long an answer counts that no cache confirms: an object that came and went while a watch was cut is never
// seen, and would be waited for in vain.
const lapse = 10 * time.Second

// of is the memory of a MyProxy; an earlier one's of that name is forgotten.
func (m *memory) of(name types.NamespacedName, proxy types.UID) *fleetMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	fleet := m.fleets[name]
	if fleet == nil || fleet.proxy != proxy {
		fleet = &fleetMemory{proxy: proxy, children: map[childID]record{}}
		if m.fleets == nil {
			m.fleets = map[types.NamespacedName]*fleetMemory{}
		}
		m.fleets[name] = fleet
	}
	return fleet
}

// forget drops all that concerns a MyProxy.
func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.fleets, name)
}

func (f *fleetMemory) get(id childID) record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.children[id]
}

func (f *fleetMemory) put(id childID, r record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.gone = f.children[id].gone // the handlers may have seen more since
	f.children[id] = r
}

// goes notes that a child went, and with it what was refused for its sake.
func (f *fleetMemory) goes(id childID, uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.children[id]
	r.gone, r.refused = uid, nil
	f.children[id] = r
}

// comes notes that a child is there: one that lost its label and has it again never went.
func (f *fleetMemory) comes(id childID, uid types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.children[id]; r.gone == uid {
		r.gone = ""
		f.children[id] = r
	}
}

// prune drops the records of children that are neither wanted nor there.
func (f *fleetMemory) prune(keep func(childID) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.children, func(id childID, _ record) bool { return !keep(id) })
}

// counts tells whether the answer is newer than what the cache has: whether it is what the child is like now.
func (r record) counts(cached metav1.Object, now time.Time) bool {
	switch {
	case r.answer == nil || r.answer.GetUID() == r.gone:
		return false
	case cached == nil:
		return now.Before(r.at.Add(lapse))
	default:
		return older(cached.GetResourceVersion(), r.answer.GetResourceVersion())
	}
}

// failed is the record after an apply that failed: what was refused is not asked again before it is due.
func (r record) failed(c child, f *failure, now time.Time) record {
	next := record{answer: r.answer, at: r.at} // no intent: it is not known what the server has
	if f.err == nil && f.reason != "" {
		next.intent, next.refused, next.retryAt = c.intent, f, now.Add(f.retryIn)
	}
	return next
}

// holds tells whether what was refused need not be asked again yet: the same intent, or, where the object is somebody else's, any.
func (r record) holds(c child, now time.Time) bool {
	return r.refused != nil && now.Before(r.retryAt) && (r.intent == c.intent || r.refused.reason == v1alpha1.ReasonNameConflict)
}

// settled tells whether the server has nothing to decide: the intent is the one that it answered, and the child is as that
// answer said.
func (r record) settled(c child, live metav1.Object) bool {
	return live != nil && r.answer != nil && r.refused == nil && r.intent == c.intent &&
		r.answer.GetUID() == live.GetUID() && version(r.answer, c) == version(live, c)
}

// version changes with every change of the child that may concern what the operator set. A Deployment's resourceVersion changes
// all the time by itself, and its generation with every annotation: the hash of its spec counts, with the values under the label
// and annotation keys that the intent sets, and the owner references.
func version(object metav1.Object, c child) string {
	var all strings.Builder
	all.WriteString(cmp.Or(object.GetAnnotations()[annotationSpec], object.GetResourceVersion()))
	for _, key := range slices.Sorted(maps.Keys(c.config.GetLabels())) {
		fmt.Fprintf(&all, " %q", object.GetLabels()[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.config.GetAnnotations())) {
		fmt.Fprintf(&all, " %q", object.GetAnnotations()[key])
	}
	fmt.Fprintf(&all, " %s", encode(object.GetOwnerReferences()))
	return all.String()
}

// older compares resourceVersions of one object (KEP-5504: they are comparable). What can't be compared is not older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// answers are those that count, given what the caches have, and how long they will do so without a cache that confirms them;
// zero, if all are confirmed.
func (f *fleetMemory) answers(cached func(childID) metav1.Object, now time.Time) (all []metav1.Object, lapseIn time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, r := range f.children { // in any order: each is another child's
		known := cached(id)
		if !r.counts(known, now) {
			continue
		}
		all = append(all, r.answer)
		if known == nil {
			lapseIn = soonest(lapseIn, r.at.Add(lapse).Sub(now))
		}
	}
	return all, lapseIn
}
