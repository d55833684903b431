package managedfields

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Owner is who owns a field, and since when: one entry of metadata.managedFields.
type Owner struct {
	// Manager is the name that the writer gave, such as kubectl or myproxy-status.
	Manager string
	// Operation is Apply for a server-side apply, Update for every other kind of write.
	Operation metav1.ManagedFieldsOperationType
	// Subresource is what was written to, such as status or scale; empty for the object itself.
	Subresource string
	// Time is when the manager last changed its fields (any of them, not this one). It is zero where the API server keeps
	// none: after a first write to /scale, a first apply that changed no value, and for what was there before the first.
	Time time.Time
}

// Field is a field of an object, or an item of one of its lists, that has owners or has fields with owners below it.
type Field struct {
	// Name tells the field from its siblings, as the API server writes it in a conflict but for the leading dot:
	// replicas, [name="nginx"] for an item of a map list, [="a"] for an item of a set, [0] for one of another list.
	// It is not escaped: a key of a free-form map can be any string.
	Name string
	// Owners are those of the field itself, sorted by manager, operation, subresource and time; more than one co-own
	// it. A field with nobody but owners of something below it has none.
	Owners []Owner
	// Fields are the fields below it: named ones by name, then items by key, value or index.
	Fields []Field
}

// Tree returns the owned fields of an object, the same for every order of its managedFields. It is empty where the
// object has no managedFields. The error names the manager whose entry can't be read.
func Tree(obj metav1.Object) ([]Field, error) {
	var entries []ownedSet
	for _, entry := range obj.GetManagedFields() {
		set, err := readEntry(entry)
		if err != nil {
			return nil, err
		}
		entries = append(entries, ownedSet{owner: ownerOf(entry), set: set})
	}
	slices.SortStableFunc(entries, func(a, b ownedSet) int { return compareOwners(a.owner, b.owner) })
	return fieldsOf(entries), nil
}

// Owned returns the paths that a manager owns by one kind of write to one subresource (empty: the object itself),
// sorted. It is empty where the manager has no such entry. The paths are spelled as in the API server's conflicts:
// .spec.template.spec.containers[name="nginx"].image; an item that is owned itself has a path of its own. Keys of map
// lists and sets are part of a path, so names and uids in them are the caller's to make stable. An error is that of
// the manager's own entry: others' are not read.
func Owned(obj metav1.Object, manager string, operation metav1.ManagedFieldsOperationType, subresource string) ([]string, error) {
	owned := fieldpath.NewSet()
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != operation || entry.Subresource != subresource {
			continue
		}
		set, err := readEntry(entry)
		if err != nil {
			return nil, err
		}
		owned = owned.Union(set) // a manager has one entry for each API version that it writes
	}
	var paths []string
	owned.Iterate(func(path fieldpath.Path) { paths = append(paths, path.String()) })
	slices.Sort(paths)
	return paths, nil
}

// ownedSet is what one entry owns at or below a certain field.
type ownedSet struct {
	owner Owner
	set   *fieldpath.Set
}

// fieldsOf lays the entries' sets over each other, a level at a time.
func fieldsOf(entries []ownedSet) []Field {
	var fields []Field
	for _, element := range elementsOf(entries) {
		field := Field{Name: strings.TrimPrefix(element.String(), ".")}
		var below []ownedSet
		for _, entry := range entries {
			if entry.set.Members.Has(element) {
				field.Owners = append(field.Owners, entry.owner)
			}
			if set, ok := entry.set.Children.Get(element); ok {
				below = append(below, ownedSet{owner: entry.owner, set: set})
			}
		}
		field.Fields = fieldsOf(below)
		fields = append(fields, field)
	}
	return fields
}

// elementsOf returns what any of the entries has at this level, each once, in fieldpath's order.
func elementsOf(entries []ownedSet) []fieldpath.PathElement {
	var elements []fieldpath.PathElement
	add := func(element fieldpath.PathElement) { elements = append(elements, element) }
	for _, entry := range entries {
		entry.set.Members.Iterate(add)
		entry.set.Children.Iterate(add)
	}
	slices.SortFunc(elements, fieldpath.PathElement.Compare)
	return slices.CompactFunc(elements, fieldpath.PathElement.Equals)
}

func ownerOf(entry metav1.ManagedFieldsEntry) Owner {
	owner := Owner{Manager: entry.Manager, Operation: entry.Operation, Subresource: entry.Subresource}
	if entry.Time != nil {
		owner.Time = entry.Time.Time
	}
	return owner
}

// compareOwners leaves the order of two owners open only where they are alike in everything that is shown.
func compareOwners(a, b Owner) int {
	return cmp.Or(
		cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.Operation, b.Operation),
		cmp.Compare(a.Subresource, b.Subresource),
		a.Time.Compare(b.Time),
	)
}
