package icebergrest

import (
	"net/url"
	"strings"
)

// split returns the parts of an address after /v1, decoded. The path is split before it is decoded, because the name of
// a table may contain a slash. Iceberg's clients encode a space as +, as in a form.
func split(path string) (parts []string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return nil, false
	}

	for part := range strings.SplitSeq(rest, "/") {
		decoded, err := url.QueryUnescape(part)
		if err != nil || decoded == "" {
			return nil, false
		}

		parts = append(parts, decoded)
	}

	return parts, true
}
