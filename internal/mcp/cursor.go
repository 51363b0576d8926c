package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"quern.dev/quern/internal/fault"
)

const tagBytes = 8

// tag identifies the list that a cursor belongs to: the caller, the tool and its other arguments. A cursor grants nothing, but its
// position would skip entries of another list.
func (call *invocation) tag() []byte {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n", call.request.Params.Name, call.who.Account)

	for _, name := range slices.Sorted(maps.Keys(call.args.given)) {
		if name != "cursor" && name != "columns" {
			fmt.Fprintf(hash, "%s=%q\n", name, call.args.given[name])
		}
	}

	return hash.Sum(nil)[:tagBytes]
}

// position reads the position of the cursor argument, if there is one.
func (call *invocation) position(into any) error {
	text := call.args.text("cursor", maxCursor)
	if err := call.args.check(); err != nil || text == "" {
		return err
	}

	content, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(content) < tagBytes || !bytes.Equal(content[:tagBytes], call.tag()) || json.Unmarshal(content[tagBytes:], into) != nil {
		return fault.Invalid("cursor", "is not the nextCursor of an earlier call with the same arguments; start again without a cursor")
	}

	return nil
}

// cursor returns the cursor for a position.
func (call *invocation) cursor(position any) (string, error) {
	content, err := json.Marshal(position)

	return base64.RawURLEncoding.EncodeToString(append(call.tag(), content...)), err
}
