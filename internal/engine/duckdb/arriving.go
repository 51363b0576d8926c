package duckdb

import (
	"errors"
	"io"
	"os"
	"time"
)

// arrivalPause is how long a reader waits for more of a file that is still arriving.
const arrivalPause = 2 * time.Millisecond

// arriving reads a file that grows until it has its size. It waits for bytes that are not there yet. If they never come, the parent ends
// this process.
type arriving struct {
	file *os.File // not embedded: its WriteTo would end where the file ends now
	left int64
}

// openArriving opens a file that has a certain size, now or soon.
func openArriving(path string, size int64) (*arriving, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}

	return &arriving{file: file, left: size}, nil
}

func (a *arriving) Read(p []byte) (int, error) {
	if a.left <= 0 {
		return 0, io.EOF
	}

	for {
		n, err := a.file.Read(p[:min(int64(len(p)), a.left)])
		if n > 0 || !errors.Is(err, io.EOF) {
			a.left -= int64(n)

			return n, err
		}

		time.Sleep(arrivalPause)
	}
}

func (a *arriving) Close() error { return a.file.Close() }

// open opens the file for reading from the start.
func (f *plainFile) open() (*arriving, error) { return openArriving(f.path, f.size) }

// arrive waits until the whole file is there.
func (f *plainFile) arrive() error {
	for {
		info, err := os.Stat(f.path)
		if err != nil || info.Size() >= f.size {
			return err
		}

		time.Sleep(arrivalPause)
	}
}
