package managedfields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// fieldsV1 is the only format of a field set that Kubernetes ever had.
const fieldsV1 = "FieldsV1"

// readEntry reads the field set of one entry; the error names its manager. An entry without a set owns nothing.
func readEntry(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set, err := entrySet(entry)
	if err != nil {
		return nil, fmt.Errorf("read the fields of manager %q: %w", entry.Manager, err)
	}
	return set, nil
}

func entrySet(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	if entry.FieldsV1 == nil {
		return fieldpath.NewSet(), nil
	}
	if entry.FieldsType != fieldsV1 {
		return nil, fmt.Errorf("fieldsType is %q, not %s", entry.FieldsType, fieldsV1)
	}
	raw, err := entry.FieldsV1.MarshalJSON() // the bytes as they are, unless a client fetched the object as CBOR
	if err != nil {
		return nil, err
	}
	return readSet(raw)
}

// readSet reads a FieldsV1 document. It accepts what v6 accepts, as far as it is JSON.
func readSet(raw []byte) (*fieldpath.Set, error) {
	if err := checkWhole(raw); err != nil {
		return nil, err
	}
	set := fieldpath.NewSet()
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return nil, err
	}
	return set, nil
}

// checkWhole refuses a document with anything behind its JSON value, and one with a key that has anything behind its.
// v4 drops both silently. Whoever wrote them meant something else than what v4 reads, and the API server's v6 calls
// such an entry broken: better an error than a field set that only we believe in.
func checkWhole(raw []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	var document json.RawMessage
	if err := decoder.Decode(&document); err != nil {
		return fmt.Errorf("not JSON: %w", noEOF(err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("trailing data after the JSON object")
	}
	keys := json.NewDecoder(bytes.NewReader(document))
	if token, err := keys.Token(); err != nil || token != json.Delim('{') {
		return err // null or a scalar: v4 knows what to do with it
	}
	return checkKeys(keys)
}

// checkKeys looks at every key of the object that the decoder just entered, duplicates included, down to its leaves.
func checkKeys(decoder *json.Decoder) error {
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		key, _ := token.(string) // JSON has no other keys
		if err := checkKey(key); err != nil {
			return err
		}
		if err := checkBelow(decoder, key); err != nil {
			return err
		}
	}
	_, err := decoder.Token() // the closing brace
	return err
}

// checkBelow looks at the value of the key that the decoder just read, unless the parsers skip it.
func checkBelow(decoder *json.Decoder, key string) error {
	if !isElement(key) {
		return decoder.Decode(new(json.RawMessage))
	}
	token, err := decoder.Token()
	switch {
	case err != nil:
		return err
	case token == json.Delim('{'):
		return checkKeys(decoder)
	case token == json.Delim('['):
		return fmt.Errorf("key %q has a list below it", key)
	default:
		return nil // null is a leaf; v4 refuses the others
	}
}

// isElement tells the keys that select something: not ".", which is the field itself, nor the kinds of a future version.
func isElement(key string) bool {
	kind, _, found := strings.Cut(key, ":")
	return found && slices.Contains([]string{"f", "k", "v", "i"}, kind)
}

// checkKey refuses a key of a map list or a value of a set that is not exactly one JSON value.
func checkKey(key string) error {
	for _, kind := range []string{"k:", "v:"} {
		if text, ok := strings.CutPrefix(key, kind); ok && !json.Valid([]byte(text)) {
			return fmt.Errorf("key %q is not one JSON value", key)
		}
	}
	return nil
}

// noEOF keeps io.EOF from being returned for an empty document: callers take it for a regular end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
