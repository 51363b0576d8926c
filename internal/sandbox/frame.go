package sandbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	maxFrame  = 16 << 20 // of one frame, both ways
	maxFrames = 1 << 16  // that a child may send
	maxSpoken = 32 << 20 // bytes in all frames of a child; bulk goes through the data pipe
)

// kind tells frames apart. A child sends ready once, messages, and one end.
type kind byte

const (
	kindSetup   kind = 's' // parent to child, first: what to be
	kindReady   kind = 'r' // child to parent: prepared and sealed
	kindMessage kind = 'm' // both ways: the program's own
	kindEnd     kind = 'e' // child to parent, last: how the job ended
)

// outcome is the payload of ready and end.
type outcome struct {
	Error    string `json:"error,omitempty"`
	Landlock int    `json:"landlock,omitempty"`
	Seccomp  bool   `json:"seccomp,omitempty"`
}

var errFrame = errors.New("not a frame")

// writeFrame writes a frame in one call, so that frames of two goroutines cannot mix on a pipe under a lock.
func writeFrame(w io.Writer, k kind, message any) error {
	payload, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("a message: %w", err)
	}

	if len(payload) > maxFrame {
		return fmt.Errorf("a message of %d bytes, more than %d", len(payload), maxFrame)
	}

	frame := make([]byte, 0, 5+len(payload))
	frame = append(frame, byte(k))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload))) //nolint:gosec // G115: at most maxFrame
	frame = append(frame, payload...)

	_, err = w.Write(frame)

	return err
}

// readFrame reads a frame. It believes the length only as far as bytes arrive.
func readFrame(r io.Reader) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}

	switch kind(head[0]) {
	case kindSetup, kindReady, kindMessage, kindEnd:
	default:
		return 0, nil, fmt.Errorf("%w: kind %d", errFrame, head[0])
	}

	length := int64(binary.BigEndian.Uint32(head[1:]))
	if length > maxFrame {
		return 0, nil, fmt.Errorf("%w: length %d", errFrame, length)
	}

	var payload bytes.Buffer

	_, err := io.CopyN(&payload, r, length)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}

	return kind(head[0]), payload.Bytes(), err
}
