package server

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// bufferedBytes is the number of bytes of a response that are buffered before it begins, so that an early error still
// becomes an error response.
const bufferedBytes = 1 << 20

// bufferedResponse is a response whose beginning is buffered.
type bufferedResponse struct {
	w      http.ResponseWriter
	media  string
	buffer bytes.Buffer
	begun  bool
}

func (b *bufferedResponse) text(text string) { b.bytes([]byte(text)) }

func (b *bufferedResponse) json(before string, value any) {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // only our own types are encoded, which cannot fail
	}

	b.text(before)
	b.bytes(encoded)
}

func (b *bufferedResponse) bytes(data []byte) {
	if b.begun {
		_, _ = b.w.Write(data) // the context reports a client that disconnected

		return
	}

	b.buffer.Write(data)

	if b.buffer.Len() > bufferedBytes {
		b.begin()
	}
}

func (b *bufferedResponse) begin() {
	if b.begun {
		return
	}

	b.begun = true
	b.w.Header().Set("Content-Type", b.media)
	b.w.WriteHeader(http.StatusOK)
	_, _ = b.w.Write(b.buffer.Bytes())
	b.buffer = bytes.Buffer{}
}
