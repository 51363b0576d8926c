package e2e

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestFsck(t *testing.T) {
	t.Parallel()

	s := start(t)
	bearer := s.newKey().token("fsck")
	whole, lost, open := prepare(t, s, bearer, 1), prepare(t, s, bearer, 2), prepare(t, s, bearer, 3)

	for i, session := range []prepared{whole, lost} {
		session.Files[0].send(t, int64(i+1))
		session.requireFinished(t, session.finish(t, s, bearer, 0), 0, "completed")
	}

	require.Equal(t, "0 lost, 0 orphans\n", s.quernd("fsck"))

	old, today := "uploads/2020-01-02/"+uuid.NewString(), whole.Files[0].Key+"-too"
	begun, young := s.place.begin(old), s.place.begin(today) // the recent upload may be in progress

	_, err := s.place.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &s.place.bucket, Key: new(s.place.prefix + old), Body: strings.NewReader("x")})
	require.NoError(t, err)
	_, err = s.place.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &s.place.bucket, Key: new(s.place.prefix + lost.Files[0].Key)})
	require.NoError(t, err)

	found := "lost " + lost.Files[0].Key + "\norphan " + old + " \norphan " + old + " " + begun + "\n1 lost, 2 orphans"
	require.Equal(t, found+"\n", s.quernd("fsck"))
	require.Contains(t, s.place.objects(), old, "nobody said that it may go")
	require.Equal(t, found+", removed\n", s.quernd("fsck", "--delete"))
	require.Equal(t, "lost "+lost.Files[0].Key+"\n1 lost, 0 orphans\n", s.quernd("fsck"))

	objects := s.place.objects()
	delete(objects, "deployment")
	require.Equal(t, map[string]int64{whole.Files[0].Key: 1}, objects)

	var left []string
	for _, key := range s.place.uploads() {
		left = append(left, key)
	}

	require.ElementsMatch(t, []string{today, open.Files[0].Key}, left)

	// With --age 0s the recent upload is an orphan too. An upload that has a row stays.
	found = "lost " + lost.Files[0].Key + "\norphan " + today + " " + young + "\n1 lost, 1 orphans"
	require.Equal(t, found+"\n", s.quernd("fsck", "--age", "0s"))
	require.Equal(t, found+", removed\n", s.quernd("fsck", "--age", "0s", "--delete"))
	require.Equal(t, map[string]string{open.Files[0].UploadID: open.Files[0].Key}, s.place.uploads())
}
