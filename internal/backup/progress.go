package backup

import (
	"fmt"
	"io"
	"sync"
	"time"
)

const progressEvery = 3 * time.Second

// Progress prints how much of a backup is copied, every few seconds.
type Progress struct {
	Out  io.Writer
	All  About
	Verb string

	mu      sync.Mutex
	objects int64
	bytes   int64
	printed time.Time
}

// Add counts an object.
func (p *Progress) Add(o Object) { p.add(1, o.Size) }

func (p *Progress) add(objects, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.objects += objects
	p.bytes += bytes

	if p.printed.IsZero() {
		p.printed = time.Now()
	}

	if time.Since(p.printed) >= progressEvery {
		p.printed = time.Now()
		_, _ = fmt.Fprintf(p.Out, "%s %d of %d objects, %d of %d MiB\n", p.Verb, p.objects, p.All.Objects, p.bytes>>20, p.All.Bytes>>20)
	}
}
