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
	maxFrame  = 16 << 20 // bytes of one frame, in both directions
	maxFrames = 1 << 16  // frames that a child may send
	maxSpoken = 32 << 20 // bytes of all frames of a child; large results use the data pipe
)

// kind is the kind of a frame. A child sends ready once, then messages, then one end.
type kind byte

const (
	kindSetup   kind = 's' // parent to child, first: folder and seal
	kindReady   kind = 'r' // child to parent: prepared and sealed
	kindMessage kind = 'm' // both directions: messages of the program
	kindEnd     kind = 'e' // child to parent, last: how the job ended
)

// outcome is the payload of the frames ready and end.
type outcome struct {
	Version  string `json:"version,omitempty"` // only ready
	Error    string `json:"error,omitempty"`
	Landlock int    `json:"landlock,omitempty"`
	Seccomp  bool   `json:"seccomp,omitempty"`
}

var errFrame = errors.New("invalid frame")

// writeFrame writes a frame in one call, so that frames of two goroutines cannot interleave on a pipe that is protected
// by a lock.
func writeFrame(w io.Writer, k kind, message any) error {
	payload, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}

	if len(payload) > maxFrame {
		return fmt.Errorf("a message has %d bytes, but the limit is %d", len(payload), maxFrame)
	}

	frame := make([]byte, 0, 5+len(payload))
	frame = append(frame, byte(k))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(payload))) //nolint:gosec // G115: at most maxFrame
	frame = append(frame, payload...)

	_, err = w.Write(frame)

	return err
}

// readFrame reads a frame. It allocates memory only as bytes arrive, because the length is not trusted.
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
