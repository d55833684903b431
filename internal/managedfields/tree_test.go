package managedfields

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	noon  = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	apply = Owner{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, Time: noon}
	scale = Owner{
		Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "scale",
		Time: noon.Add(time.Minute),
	}
)

func TestTreeLaysTheManagersFieldsOverEachOther(t *testing.T) {
	got := mustTree(t,
		entryOf(scale, `{"f:spec":{"f:replicas":{}}}`),
		entryOf(apply, `{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}}},"f:spec":{"f:replicas":{},
			"f:containers":{"k:{\"name\":\"nginx\"}":{".":{},"f:args":{"i:1":{}}}}}}`),
	)
	want := []Field{
		{Name: "metadata", Fields: []Field{
			{Name: "finalizers", Owners: []Owner{apply}, Fields: []Field{{Name: `[="a"]`, Owners: []Owner{apply}}}},
		}},
		{Name: "spec", Fields: []Field{
			{Name: "containers", Fields: []Field{
				{Name: `[name="nginx"]`, Owners: []Owner{apply}, Fields: []Field{
					{Name: "args", Fields: []Field{{Name: "[1]", Owners: []Owner{apply}}}},
				}},
			}},
			{Name: "replicas", Owners: []Owner{scale, apply}},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestTreeListsCoOwnersInOneOrder(t *testing.T) {
	owners := []Owner{
		{Manager: "a", Operation: "Apply", Subresource: ""},
		{Manager: "a", Operation: "Apply", Subresource: "status"},
		{Manager: "a", Operation: "Update", Subresource: "", Time: noon},
		{Manager: "a", Operation: "Update", Subresource: "", Time: noon.Add(time.Second)}, // of another API version
		{Manager: "b", Operation: "Apply", Subresource: ""},
	}
	var entries []metav1.ManagedFieldsEntry
	for _, owner := range slices.Backward(owners) {
		entries = append(entries, entryOf(owner, `{"f:data":{}}`))
	}
	want := []Field{{Name: "data", Owners: owners}}
	if got := mustTree(t, entries...); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestTreeOfAnObjectWithoutManagedFieldsIsEmpty(t *testing.T) {
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{
		"no entries":               nil,
		"an entry without a set":   {{Manager: "a", Operation: "Update"}},
		"an entry with an empty":   {entry("a", `{}`)},
		"an entry with a null set": {{Manager: "a", FieldsType: fieldsV1, FieldsV1: &metav1.FieldsV1{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustTree(t, entries...); len(got) != 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTreeReadsFieldsThatAClientFetchedAsCBOR(t *testing.T) {
	fields := &metav1.FieldsV1{}
	cbor, err := metav1.NewFieldsV1(`{"f:data":{}}`).MarshalCBOR()
	if err != nil {
		t.Fatal(err)
	}
	fields.SetRawBytes(cbor)
	got := mustTree(t, metav1.ManagedFieldsEntry{Manager: "a", FieldsType: fieldsV1, FieldsV1: fields})
	if len(got) != 1 || got[0].Name != "data" {
		t.Errorf("got %+v", got)
	}
}

func TestAnEntryThatCannotBeReadIsAnErrorThatNamesItsManager(t *testing.T) {
	for name, broken := range map[string]metav1.ManagedFieldsEntry{
		"no JSON":             entry("bad", `{"f:a":`),
		"an unknown kind":     entry("bad", `{"a":{}}`),
		"garbage behind":      entry("bad", `{"f:a":{}} garbage`),
		"garbage in a key":    entry("bad", `{"v:1 2":{}}`),
		"another fields type": {Manager: "bad", FieldsType: "FieldsV2", FieldsV1: metav1.NewFieldsV1(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{entry("good", `{"f:a":{}}`), broken}}
			for of, read := range map[string]func() error{
				"Tree":  func() error { _, err := Tree(obj); return err },
				"Owned": func() error { _, err := Owned(obj, "bad", broken.Operation, ""); return err },
			} {
				if err := read(); err == nil || !strings.Contains(err.Error(), `manager "bad"`) {
					t.Errorf("%s: %v", of, err)
				}
			}
			if _, err := Owned(obj, "good", "Apply", ""); err != nil {
				t.Errorf("Owned by another manager: %v", err)
			}
		})
	}
}

func TestOwnedIsOneManagersWritesOfOneKindToOneSubresource(t *testing.T) {
	older := entryOf(apply, `{"f:spec":{"f:replicas":{},"f:paused":{}}}`)
	older.APIVersion = "apps/v1beta2"
	obj := &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		older,
		entryOf(apply, `{"f:spec":{"f:replicas":{},"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}`),
		entryOf(Owner{Manager: "kubectl", Operation: "Apply", Subresource: "status"}, `{"f:status":{"f:phase":{}}}`),
		entryOf(Owner{Manager: "kubectl", Operation: "Update"}, `{"f:data":{}}`),
		entryOf(Owner{Manager: "helm", Operation: "Apply"}, `{"f:metadata":{"f:labels":{}}}`),
	}}
	for _, tc := range []struct {
		manager, operation, subresource string
		want                            []string
	}{
		{"kubectl", "Apply", "", []string{
			`.spec.containers[name="a"]`, `.spec.containers[name="a"].image`, `.spec.paused`, `.spec.replicas`,
		}},
		{"kubectl", "Apply", "status", []string{".status.phase"}},
		{"kubectl", "Update", "", []string{".data"}},
		{"helm", "Apply", "", []string{".metadata.labels"}},
		{"helm", "Update", "", nil},
		{"nobody", "Apply", "", nil},
	} {
		got, err := Owned(obj, tc.manager, metav1.ManagedFieldsOperationType(tc.operation), tc.subresource)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s %s %q: got %q (%v), want %q", tc.manager, tc.operation, tc.subresource, got, err, tc.want)
		}
	}
}

// entry is an Apply entry of a manager, without a time.
func entry(manager, fields string) metav1.ManagedFieldsEntry {
	return entryOf(Owner{Manager: manager, Operation: metav1.ManagedFieldsOperationApply}, fields)
}

func entryOf(owner Owner, fields string) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{
		Manager: owner.Manager, Operation: owner.Operation, Subresource: owner.Subresource,
		APIVersion: "apps/v1", FieldsType: fieldsV1, FieldsV1: metav1.NewFieldsV1(fields),
	}
	if !owner.Time.IsZero() {
		e.Time = &metav1.Time{Time: owner.Time}
	}
	return e
}

func mustTree(t *testing.T, entries ...metav1.ManagedFieldsEntry) []Field {
	t.Helper()
	tree, err := Tree(&metav1.ObjectMeta{ManagedFields: entries})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
