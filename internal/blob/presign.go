package blob

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/smithy-go/encoding/httpbinding"
)

// Part is a part that is to come.
type Part struct {
	Key      string
	UploadID string
	Number   int
	Size     int64
}

// PresignPart returns the address to which anybody may PUT this part until ttl is over. Its size is
// signed, so that a store that checks it takes no other; that of an empty part cannot be.
func (s *Store) PresignPart(ctx context.Context, part Part, ttl time.Duration) (string, error) {
	query := url.Values{"partNumber": {strconv.Itoa(part.Number)}, "uploadId": {part.UploadID}}

	return s.presign(ctx, http.MethodPut, part.Key, query, part.Size, ttl)
}

// PresignGet returns the address from which anybody may download the object until ttl is over, as a
// file of this name.
func (s *Store) PresignGet(ctx context.Context, key string, ttl time.Duration, filename string) (string, error) {
	disposition := mime.FormatMediaType("attachment", map[string]string{"filename": filename})

	return s.presign(ctx, http.MethodGet, key, url.Values{"response-content-disposition": {disposition}}, 0, ttl)
}

// presign signs by itself what the SDK's presigner would, which takes five times as long: a file has up
// to 10,000 parts.
func (s *Store) presign(ctx context.Context, method, key string, query url.Values, size int64, ttl time.Duration) (string, error) {
	query.Set("X-Amz-Expires", strconv.FormatInt(int64(ttl/time.Second), 10))

	address := s.public
	address.Path += key
	address.RawPath = httpbinding.EscapePath(address.Path, false)
	address.RawQuery = query.Encode()

	request := (&http.Request{Method: method, URL: &address, Header: http.Header{}, ContentLength: size}).WithContext(ctx)

	signed, _, err := s.signer.PresignHTTP(ctx, s.keys, request, "UNSIGNED-PAYLOAD", "s3", s.region, s.now())
	if err != nil {
		return "", fmt.Errorf("signing an address: %w", err)
	}

	return signed, nil
}
