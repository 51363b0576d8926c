package main

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

// footprint is the memory of a process and of all that it started, at most.
type footprint struct {
	child int64 // of one of its children, resident
	total int64 // of all together; what they share counts once
}

// watch looks again how much memory that is.
func (f *footprint) watch(pid int) error {
	family, err := descendants(pid)
	if err != nil {
		return err
	}

	var total int64

	for _, member := range append(family, pid) {
		peak, err := fieldOf(member, "status", "VmHWM:")
		if err != nil {
			return err
		}

		if member != pid {
			f.child = max(f.child, peak)
		}

		share, err := fieldOf(member, "smaps_rollup", "Pss:")
		if err != nil {
			return err
		}

		total += share
	}

	f.total = max(f.total, total)

	return nil
}

func descendants(pid int) (found []int, err error) {
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

		// The name, in parentheses, may have anything in it.
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

// fieldOf is a field in kB of a file in /proc, in bytes. It is 0 for a process that has ended.
func fieldOf(pid int, file, name string) (int64, error) {
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

	return 0, nil // a process that ends has no memory any more
}
