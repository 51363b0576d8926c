package upload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
)

const mebibyte = 1 << 20

func TestPartSizes(t *testing.T) {
	t.Parallel()

	for size, want := range map[int64]struct {
		part  int64
		parts int
	}{
		1:                          {8 * mebibyte, 1},
		8 * mebibyte:               {8 * mebibyte, 1},
		8*mebibyte + 1:             {8 * mebibyte, 2},
		10_000 * 8 * mebibyte:      {8 * mebibyte, 10_000},
		10_000*8*mebibyte + 1:      {9 * mebibyte, 8889},
		5 * 1024 * 1024 * mebibyte: {525 * mebibyte, 9987},
	} {
		file := File{Size: size, PartSize: partSize(size)}
		require.Equal(t, want.part, file.PartSize, size)
		require.Equal(t, want.parts, file.parts(), size)

		var sum int64
		for number := range file.parts() {
			sum += file.partLength(number + 1)
		}

		require.Equal(t, size, sum)
		require.Positive(t, file.partLength(file.parts()))
	}
}

func TestFilenames(t *testing.T) {
	t.Parallel()

	for name, good := range map[string]bool{
		"orders.csv": true, "a b": true, "../../etc/passwd": true, "ünï.csv": true, strings.Repeat("x", 255): true, strings.Repeat("ä", 127): true,
		"": false, strings.Repeat("x", 256): false, strings.Repeat("ä", 128): false, "a\nb": false, "a\x00": false, "\x7f": false, "a\u0085b": false, "\xff": false,
	} {
		require.Equal(t, good, checkFilename(name) == "", "%q", name)
	}
}

func TestCheckParts(t *testing.T) {
	t.Parallel()

	file := File{Size: 20 * mebibyte, PartSize: 8 * mebibyte}
	stored := []blob.UploadedPart{{Number: 1, Size: 8 * mebibyte, ETag: `"a"`}, {Number: 2, Size: 8 * mebibyte, ETag: `"b"`}, {Number: 3, Size: 4 * mebibyte, ETag: `"c"`}}
	sent := []SentPart{{1, `"a"`}, {2, "b"}, {3, `"c"`}}

	require.NoError(t, checkParts(file, stored, sent))

	subs := func(stored []blob.UploadedPart, sent ...SentPart) []fault.Sub {
		return fault.From(checkParts(file, stored, sent)).Subs
	}

	require.Equal(t, []fault.Sub{
		{Code: "parts", Message: "part 2 has not been uploaded"},
		{Code: "parts", Message: "part 3 has 5242880 bytes instead of 4194304"},
		{Code: "parts", Message: "part 4 was uploaded, but the file has 3 parts"},
	}, subs([]blob.UploadedPart{{Number: 1, Size: 8 * mebibyte, ETag: "a"}, {Number: 3, Size: 5 * mebibyte}, {Number: 4, Size: 1}}, sent...))

	require.Equal(t, []fault.Sub{
		{Code: "parts.1.partNumber", Message: "part 1 is listed twice"},
		{Code: "parts.2.partNumber", Message: "the file has 3 parts"},
		{Code: "parts", Message: "part 2 is not listed"},
		{Code: "parts", Message: "part 3 is not listed"},
	}, subs(stored, SentPart{1, "a"}, SentPart{1, "a"}, SentPart{4, "d"}))

	require.Equal(t, []fault.Sub{
		{Code: "parts.1.etag", Message: "is not the ETag of part 2 in the object store; upload the part again and send the ETag of the response"},
	}, subs(stored, sent[0], SentPart{2, "x"}, sent[2]))

	many := File{Size: 10_000 * 8 * mebibyte, PartSize: 8 * mebibyte}
	require.Len(t, fault.From(checkParts(many, nil, nil)).Subs, maxSubs+1)
}

func TestDraft(t *testing.T) {
	t.Parallel()

	now := time.Date(2026, 11, 15, 23, 59, 0, 0, time.UTC)
	u := Uploads{Now: func() time.Time { return now }, MaxFile: 1 << 50}
	who := auth.Principal{Account: uuid.New(), Username: "ada"}

	session, err := u.draft(who, []NewFile{{Name: "a", Size: 1}})
	require.NoError(t, err)
	require.Regexp(t, `^uploads/2026-11-15/[0-9a-f-]{36}$`, session.Files[0].Key)
	require.NotContains(t, session.Files[0].Key, who.Account.String())

	_, err = u.draft(who, []NewFile{{Name: "a", Size: 5001 * 8 * mebibyte}, {Name: "b", Size: 5000 * 8 * mebibyte}})
	require.True(t, fault.Is(err, fault.PayloadTooLarge))

	_, err = u.draft(who, []NewFile{{Name: "", Size: 1}, {Name: "b", Size: 1<<50 + 1}})
	require.Len(t, fault.From(err).Subs, 2)
}
