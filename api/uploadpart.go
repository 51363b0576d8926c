package api

import (
	"context"
	"crypto/md5" //nolint:gosec // what an ETag is
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// part is a part to send.
type part struct {
	file   *uploadFile
	number int32
}

func (f *uploadFile) open() error {
	f.opening.Lock()
	defer f.opening.Unlock()

	if f.content != nil {
		return nil
	}

	content, err := os.Open(f.source.Path)
	if err != nil {
		return err
	}

	f.content = content

	return nil
}

// holds reports whether the store has a part with the same content. The size alone is not sufficient: a store may
// reserve space for a part whose sender died, and report it as stored. If an ETag is not a checksum of the content, as
// with encryption keys of the store, the part is sent again.
func (f *uploadFile) holds(ctx context.Context, there StoredPart) (bool, error) {
	offset, size := f.span(there.PartNumber)
	if there.Size != size || ctx.Err() != nil {
		return false, ctx.Err()
	}

	if err := f.open(); err != nil {
		return false, err
	}

	hash := md5.New() //nolint:gosec // what an ETag is
	if _, err := io.Copy(hash, io.NewSectionReader(f.content, offset, size)); err != nil {
		return false, err
	}

	return strings.Trim(there.Etag, `"`) == hex.EncodeToString(hash.Sum(nil)), nil
}

// put sends a part. It makes up to two more attempts, each with a fresh address, if the address has expired or the
// store failed.
func (s *sending) put(ctx context.Context, one part) error {
	offset, size := one.file.span(one.number)

	for attempt := 0; ; attempt++ {
		address, err := s.address(ctx, one, attempt > 0)
		if err != nil {
			return err
		}

		moving := &movement{sending: s}
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, http.NoBody)
		if err != nil {
			return err
		}

		request.ContentLength = size
		request.GetBody = func() (io.ReadCloser, error) {
			moving.back() // subtracts what an earlier attempt had sent

			return io.NopCloser(io.TeeReader(io.NewSectionReader(one.file.content, offset, size), moving)), nil
		}
		request.Body, _ = request.GetBody()

		response, err := s.store.Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
			_ = response.Body.Close()
		}

		switch moving.back(); {
		case err != nil:
			return fmt.Errorf("sending part %d of %s: %w", one.number, one.file.source.Name, err)
		case attempt < 2 && (response.StatusCode == http.StatusForbidden || response.StatusCode >= http.StatusInternalServerError):
		case response.StatusCode != http.StatusOK:
			return fmt.Errorf("sending part %d of %s: the object store responded with %s", one.number, one.file.source.Name, response.Status)
		default:
			s.tell(func(p *UploadProgress) {
				p.Stored += size
				one.file.etags[one.number] = response.Header.Get("ETag")
			})

			return nil
		}
	}
}

// address returns the presigned address of a part. Fresh addresses are requested for up to a hundred parts at a time.
func (s *sending) address(ctx context.Context, one part, fresh bool) (string, error) {
	file := one.file

	file.renewing.Lock()
	defer file.renewing.Unlock()

	if address := file.urls[one.number]; address != "" && !fresh {
		return address, nil
	}

	var numbers []int32
	for number := one.number; len(numbers) < 100 && int64(number-1)*file.PartSize < file.Size; number++ {
		numbers = append(numbers, number)
	}

	renewed, err := Read[UploadUrls](s.Client.RenewUploadUrls(ctx, s.session, file.FileID, RenewUploadUrls{PartNumbers: numbers}))
	if err != nil {
		return "", err
	}

	for _, address := range renewed.PresignedUrls {
		file.urls[address.PartNumber] = address.URL
	}

	return file.urls[one.number], nil
}

// movement counts the bytes of a part that are being sent.
type movement struct {
	sending *sending
	bytes   int64
}

func (m *movement) Write(b []byte) (int, error) {
	m.sending.tell(func(p *UploadProgress) {
		m.bytes += int64(len(b))
		p.Moving += int64(len(b))
	})

	return len(b), nil
}

func (m *movement) back() {
	m.sending.tell(func(p *UploadProgress) {
		p.Moving -= m.bytes
		m.bytes = 0
	})
}
