package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// progress is one line on the screen that is overwritten. Without a screen it prints nothing.
type progress struct {
	to terminal

	mutex sync.Mutex
	shown bool
	last  time.Time
	what  string // what the marks measure
	marks []mark // marks of the last seconds, for the rate
}

type mark struct {
	at   time.Time
	done int64
}

// bar shows the progress of a transfer. The rate is computed from moved, which excludes what was transferred earlier.
func (p *progress) bar(what string, done, total, moved int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	now := time.Now()
	if !p.to.screen || now.Sub(p.last) < 100*time.Millisecond {
		return
	}

	if p.last = now; p.what != what {
		p.what, p.marks = what, nil
	}

	p.marks = append(p.marks, mark{now, moved})

	for len(p.marks) > 2 && now.Sub(p.marks[0].at) > 5*time.Second {
		p.marks = p.marks[1:]
	}

	speed, left := "", ""
	if rate := p.rate(); rate > 0 {
		speed, left = size(rate)+"/s", remaining((total-done)/rate)+" left"
	}

	p.line(what, figures(done, total, speed, left), done, total)
}

// figures returns a text of constant width, so that the bar does not move.
func figures(done, total int64, speed, left string) string {
	return fmt.Sprintf("%3d%%  %6s of %-6s  %8s  %-13s", percent(done, total), size(done), size(total), speed, left)
}

const (
	longestName = 30
	leastBar    = 10
)

// line draws the name, the bar and the figures.
func (p *progress) line(what, text string, done, total int64) {
	// Write the line first and clear the rest after it, so that the screen does not flicker.
	p.to.printf("\r%s\x1b[K", drawn(what, text, p.to.columns()-3, done, total)) // the ^C of Ctrl-C must not begin a new line, or this one stays on the screen
	p.shown = true
}

// drawn returns a line with as much as fits into the width.
func drawn(what, text string, room int, done, total int64) string {
	text = cut(text, room)
	// The bar is more useful than the end of a long name.
	what = cut(cell(what), max(0, min(longestName, max(leastBar, room-textWidth(text)-leastBar-6), room-textWidth(text)-2)))

	if width := room - textWidth(what) - textWidth(text) - 6; width >= leastBar {
		width = min(width, 40)
		full := int(int64(width) * done / max(1, total))
		text = fmt.Sprintf("[%s%s]  %s", strings.Repeat("#", full), strings.Repeat(".", width-full), text)
	}

	return cut(strings.TrimRight(what+"  "+text, " "), room)
}

// say shows a state without a measure.
func (p *progress) say(what string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if p.to.screen {
		p.to.printf("\r%s\x1b[K", cut(cell(what), p.to.columns()-3))
		p.shown = true
	}
}

// clear removes the line from the screen.
func (p *progress) clear() {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if p.shown {
		p.to.printf("\r\x1b[K")
	}

	p.shown, p.marks, p.last = false, nil, time.Time{}
}

func (p *progress) rate() int64 {
	first, last := p.marks[0], p.marks[len(p.marks)-1]
	if elapsed := last.at.Sub(first.at); elapsed >= time.Second {
		return int64(float64(last.done-first.done) / elapsed.Seconds())
	}

	return 0
}

func percent(done, total int64) int64 {
	if total == 0 {
		return 100
	}

	return done * 100 / total
}

// remaining formats a duration for people.
func remaining(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%d:%02d min", seconds/60, seconds%60)
	default:
		return fmt.Sprintf("%d:%02d h", seconds/3600, seconds%3600/60)
	}
}
