package managedfields

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzRead reads any two documents as the entries of one object. Nothing panics; the reader accepts what v6 accepts of
// JSON, and reads the same; the tree is the same for every order of the entries, and holds as many fields as each manager owns.
func FuzzRead(f *testing.F) {
	for _, tc := range fieldsV1Documents {
		f.Add(tc.document, `{"f:spec":{"f:replicas":{}}}`)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		readable := readsAsV6(t, a)
		if !readsAsV6(t, b) || !readable {
			return
		}
		entries := []metav1.ManagedFieldsEntry{entry("a", a), entry("b", b)}
		tree := mustTree(t, entries...)
		slices.Reverse(entries)
		if again := mustTree(t, entries...); !reflect.DeepEqual(tree, again) {
			t.Errorf("%q, %q: the order of the entries is in the tree:\n%v\n%v", a, b, tree, again)
		}
		for _, manager := range []string{"a", "b"} {
			owned, err := Owned(&metav1.ObjectMeta{ManagedFields: entries}, manager, metav1.ManagedFieldsOperationApply, "")
			if err != nil {
				t.Fatal(err)
			}
			if got := ownedIn(tree, manager); len(got) != len(owned) {
				t.Errorf("%q, %q: %s owns %q, in the tree %q", a, b, manager, owned, got)
			}
		}
	})
}

// readsAsV6 compares the reader's verdict on a document with v6's, and tells whether it can be read.
func readsAsV6(t *testing.T, document string) bool {
	t.Helper()
	own, err := readSet([]byte(document))
	v6, err6 := readV6(document)
	switch {
	case err == nil && err6 != nil:
		t.Errorf("%q: read, but v6 refuses it: %v", document, err6)
	case err != nil && err6 == nil && json.Valid([]byte(document)):
		t.Errorf("%q: v6 reads it: %v", document, err)
	case err == nil:
		wantSame(t, own, v6)
	}
	return err == nil
}

// ownedIn lists the names of the fields of a tree that a manager owns.
func ownedIn(fields []Field, manager string) []string {
	var names []string
	for _, field := range fields {
		if slices.ContainsFunc(field.Owners, func(o Owner) bool { return o.Manager == manager }) {
			names = append(names, field.Name)
		}
		names = append(names, ownedIn(field.Fields, manager)...)
	}
	return names
}
