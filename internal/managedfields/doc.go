// Package managedfields tells who owns which field of an object, from the object's metadata.managedFields.
//
// FieldsV1, the format of an entry's field set, is a wire format: a trie in JSON whose keys are path elements. It is
// read here with structured-merge-diff/v4's fieldpath, and this is the only package that imports v4. The API machinery
// that the rest of the module uses brings v6. No type of either appears in this package's API, so the two can't meet:
// a v4 value is never handed to v6, and no schema is parsed with v4.
//
// v4 alone is not strict enough: it ignores what stands behind the JSON of a set or of a key. v6, and so the API
// server, refuses that, and so does this package (see read.go).
package managedfields
