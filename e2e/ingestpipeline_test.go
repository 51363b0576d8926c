package e2e

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ingestPipelined loads files whose data files have several parts, so that they are stored while they are written: one in which every row
// fits, and one whose last row does not fit, so that its data file is written a second time.
func ingestPipelined(t *testing.T, s *service, key *signer) {
	t.Helper()

	const rows = 120_000

	var (
		random  = rand.NewChaCha8([32]byte{1})
		noise   = make([]byte, 90) // cannot be compressed
		content strings.Builder
	)

	content.WriteString("n,noise\n")

	for n := range rows {
		_, _ = random.Read(noise) // never fails
		fmt.Fprintf(&content, "%d,%s\n", n, base64.StdEncoding.EncodeToString(noise))
	}

	for name, last := range map[string]string{"fits": "", "does not fit": "many,x\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := newFilled(t, s, "pipeliner", key.token("pipeliner"))
			done := d.wait(d.accepted(d.create(uploadLarge(t, s, d.bearer, content.String()+last), "")).ID)
			require.Equal(t, "completed", done.Status, "%+v", done.Error)
			require.EqualValues(t, rows, done.Progress.RowsDone)
			require.EqualValues(t, content.Len()+len(last), done.Progress.BytesDone)

			if last != "" {
				require.Len(t, done.SetAside, 1)
				require.EqualValues(t, rows+1, done.SetAside[0].Row)
			}

			var sum int64

			lines := strings.Split(content.String(), "\n")

			for _, row := range d.table().rows {
				n := number(row)
				sum += n
				require.Equal(t, lines[n+1], fmt.Sprintf("%d,%s", n, row[1]))
			}

			require.EqualValues(t, rows*(rows-1)/2, sum)
		})
	}
}
