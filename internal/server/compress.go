package server

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// compressedBytes is the size from which a response is compressed. Smaller ones fit into one packet anyway.
const compressedBytes = 1 << 10

// newCompressor returns a wrapper that compresses large JSON for clients that accept gzip. Files are not compressed:
// their own formats are, or the client decides.
func newCompressor() (func(http.Handler) http.HandlerFunc, error) {
	return gzhttp.NewWrapper(gzhttp.MinSize(compressedBytes), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.ContentTypes([]string{"application/json"}))
}
