package rig

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Footprint is the peak memory of a process and all its descendants, in bytes.
type Footprint struct {
	Child int64 // resident memory of the largest descendant
	Total int64 // of all together; shared memory counts once
}

// Watch updates the peaks with the current memory.
func (f *Footprint) Watch(pid int) error {
	family, err := Descendants(pid)
	if err != nil {
		return err
	}

	var total int64

	for _, member := range append(family, pid) {
		peak, err := FieldOf(member, "status", "VmHWM:")
		if err != nil {
			return err
		}

		if member != pid {
			f.Child = max(f.Child, peak)
		}

		share, err := FieldOf(member, "smaps_rollup", "Pss:")
		if err != nil {
			return err
		}

		total += share
	}

	f.Total = max(f.Total, total)

	return nil
}

func Descendants(pid int) (found []int, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}

	children := map[int][]int{}

	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}

		var (
			id, parent int
			state      string
		)

		// The name, in parentheses, can contain any characters.
		if _, err := fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), "%s %d", &state, &parent); err != nil {
			return nil, err
		}

		if id, err = strconv.Atoi(filepath.Base(filepath.Dir(path))); err != nil {
			return nil, err
		}

		children[parent] = append(children[parent], id)
	}

	for next := children[pid]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0]]...)
	}

	return found, nil
}

// FieldOf returns a field of a file in /proc that is given in kB, in bytes. It returns 0 for a process that has ended.
func FieldOf(pid int, file, name string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return 0, nil
	}

	if err != nil {
		return 0, err
	}

	for line := range bytes.Lines(text) {
		if value, found := bytes.CutPrefix(line, []byte(name)); found {
			var kilobytes int64

			_, err := fmt.Sscanf(string(value), "%d kB", &kilobytes)

			return kilobytes << 10, err
		}
	}

	return 0, nil // a process that is ending has no memory left
}
