package sandbox

import (
	"os"
	"strings"
	"sync"
	"time"
)

const maxLog = 64 << 10

// capped keeps the beginning of what a child writes to its standard output and error, and swallows the rest:
// a child that talks much must not stop for that.
type capped struct {
	file    *os.File
	reading sync.WaitGroup

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

// settle gives what there is after the end of the child. The pipe normally ends with it; one that somebody
// else holds open is not waited for.
func (l *capped) settle() string {
	_ = l.file.SetReadDeadline(time.Now().Add(100 * time.Millisecond))

	l.reading.Wait()

	l.mu.Lock()
	defer l.mu.Unlock()

	return l.text.String()
}

func (l *capped) close() string {
	defer l.file.Close()

	return l.settle()
}
