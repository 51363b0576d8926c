package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFinishLeft checks that a file is finished although its client disconnects meanwhile. Otherwise the client would find
// neither parts nor a finished file, and send all bytes again.
func TestFinishLeft(t *testing.T) {
	t.Parallel()

	between, settings := newStoreProxy(t)
	s := start(t, settings...)
	bearer := s.newKey().token("ada")
	session := prepare(t, s, bearer, 1)
	session.Files[0].send(t, 1)
	between.set(behaviour{delay: 500 * time.Millisecond})

	// The store gets the request to assemble the file after it has listed the parts.
	ctx, disconnect := context.WithTimeout(t.Context(), 750*time.Millisecond)
	defer disconnect()

	_, err := try(session.finishRequest(t, s.url, bearer, 0).WithContext(ctx))
	require.ErrorIs(t, err, context.DeadlineExceeded)

	between.set(behaviour{})
	await(t, "the file is finished", func() bool {
		found := call(t, http.MethodGet, s.url+"/file-upload/"+session.SessionID, bearer, "")

		return strings.Contains(found.body, `"sessionStatus":"completed"`)
	})
}
