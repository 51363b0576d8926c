package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// progress is one line on the screen that is written over; where there is no screen it is silent.
type progress struct {
	to terminal

	mutex sync.Mutex
	shown bool
	last  time.Time
	marks []mark // of the last seconds, for the rate
}

type mark struct {
	at   time.Time
	done int64
}

// bar shows how far something is. moved is what counts for the rate: what was there before is not fast.
func (p *progress) bar(what string, done, total, moved int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	now := time.Now()
	if !p.to.screen || now.Sub(p.last) < 100*time.Millisecond {
		return
	}

	p.last = now
	p.marks = append(p.marks, mark{now, moved})

	for len(p.marks) > 2 && now.Sub(p.marks[0].at) > 5*time.Second {
		p.marks = p.marks[1:]
	}

	text := fmt.Sprintf("%3d%%  %s of %s", percent(done, total), size(done), size(total))
	if rate := p.rate(); rate > 0 {
		text += fmt.Sprintf("  %s/s  %s left", size(rate), remaining((total-done)/rate))
	}

	p.line(what, text, done, total)
}

// line draws the name, the bar and the figures, whatever of them fits.
func (p *progress) line(what, text string, done, total int64) {
	room := p.to.columns() - 3 // the ^C of Ctrl-C must not begin a new line, or this one stays on the screen
	text = cut(text, room)
	what = cut(cell(what), max(0, min(30, room-textWidth(text)-2)))

	if width := room - textWidth(what) - textWidth(text) - 6; width >= 8 {
		width = min(width, 40)
		full := int(int64(width) * done / max(1, total))
		text = fmt.Sprintf("[%s%s]  %s", strings.Repeat("#", full), strings.Repeat(".", width-full), text)
	}

	// Written at once and cleared behind, so that nothing flickers.
	p.to.printf("\r%s  %s\x1b[K", what, text)
	p.shown = true
}

// say shows a state that has no measure.
func (p *progress) say(what string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()

	if p.to.screen {
		p.to.printf("\r%s\x1b[K", cut(cell(what), p.to.columns()-3))
		p.shown = true
	}
}

// clear takes the line off the screen.
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

// remaining is a time for people.
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
