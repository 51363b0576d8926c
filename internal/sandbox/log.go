package sandbox

import (
	"os"
	"strings"
	"sync"
	"time"
)

const maxLog = 64 << 10

// capped keeps the first maxLog bytes that a child writes to its standard output and error, and discards the rest. It
// keeps reading, so that a child with much output does not block.
type capped struct {
	file   *os.File
	reader sync.WaitGroup

	mu   sync.Mutex
	text strings.Builder
}

func (l *capped) read() {
	buffer := make([]byte, 4<<10)

	for {
		n, err := l.file.Read(buffer)

		l.mu.Lock()
		l.text.Write(buffer[:min(n, maxLog-l.text.Len())])
		l.mu.Unlock()

		if err != nil {
			return
		}
	}
}

// settle returns the output after the end of the child. The pipe normally ends with the child. If another process holds
// it open, settle stops waiting after a short time.
func (l *capped) settle() string {
	_ = l.file.SetReadDeadline(time.Now().Add(100 * time.Millisecond))

	l.reader.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}

func (l *capped) close() string {
	defer l.file.Close()

	return l.settle()
}
