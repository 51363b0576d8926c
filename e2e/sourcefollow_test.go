package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"
)

// sourcesFollow changes and deletes files at random, and compares the dataset with a model after each run.
func sourcesFollow(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "follower", key.token("follower"), `, "prefix": "in/", "changed": "replace", "deleted": "remove"`)
	random := rand.New(rand.NewPCG(1, 2))
	put := func(i int) { o.put(fmt.Sprintf("in/%02d.csv", i), 1+random.IntN(50)) }

	for i := range 10 {
		put(i)
	}

	require.Equal(t, "completed", o.refresh().Status)
	o.requireModel()

	for range loops(50) {
		touched := map[int]bool{}
		for range 1 + random.IntN(4) {
			touched[random.IntN(12)] = true
		}

		for _, i := range slices.Sorted(maps.Keys(touched)) {
			if path := fmt.Sprintf("in/%02d.csv", i); len(o.files) > 1 && random.IntN(3) == 0 {
				o.remove(path)
			} else {
				put(i)
			}
		}

		before := o.snapshots()
		run := o.refresh()
		require.Equal(t, "completed", run.Status, run.Reason)
		o.requireModel()
		require.LessOrEqual(t, o.snapshots()-before, int(run.Files)+1, "each file is replaced in one snapshot, and all removals are one")
	}

	run := o.refresh()
	require.Equal(t, []int64{0, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})

	// If no file is left, nothing is removed.
	kept := maps.Clone(o.model)
	paths := slices.Sorted(maps.Keys(o.files))

	for _, path := range paths {
		o.remove(path)
	}

	o.model = kept
	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, "Nothing was removed")
	require.Equal(t, "gone", o.get().ReasonCode)
	o.requireModel()

	// One file is enough to show that the prefix is right.
	o.model = map[int64]int{}
	o.put("in/new.csv", 3)
	o.set(true)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.EqualValues(t, 1, run.Files)
	o.requireModel()

	// A source that keeps rows tells changes, and follows them from when it is told to.
	o.change(`{"changed": "keep", "deleted": "keep"}`)

	kept = maps.Clone(o.model)
	o.put("in/new.csv", 4)

	changed := o.model
	o.model = kept
	run = o.refresh()
	require.Equal(t, []int64{0, 1, 0}, []int64{run.Files, run.Changed, run.Deleted})
	o.requireModel()

	o.model = changed
	o.change(`{"changed": "replace"}`)

	run = o.refresh()
	require.Equal(t, []int64{1, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})
	o.requireModel()

	// Files that the prefix and the pattern no longer find are left alone.
	o.put("out/a.txt", 2)
	o.change(`{"prefix": "out/", "pattern": "*.txt", "deleted": "remove", "options": {"header": true}, "accept": ["rowsPresent"]}`)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{1, 0, 0}, []int64{run.Files, run.Changed, run.Deleted})
	o.requireModel()

	for body, status := range map[string]int{`{"pattern": "["}`: http.StatusUnprocessableEntity, `{"changed": "remove"}`: http.StatusUnprocessableEntity, `{"deleted": "replace"}`: http.StatusUnprocessableEntity} {
		require.Equal(t, status, call(t, http.MethodPatch, s.url+"/sources/"+o.id, o.bearer, body).status, body)
	}
}

// snapshots returns the number of snapshots of the dataset.
func (o *sourceOf) snapshots() int {
	o.t.Helper()

	var page struct{ Data []struct{ SnapshotID string } }

	o.call(http.MethodGet, "/snapshots?limit=100", "").json(o.t, &page)

	return len(page.Data)
}

// sourcesFollowMore replaces rows that were compacted, restored, or are subject to a key.
func sourcesFollowMore(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "keeper", key.token("keeper"), `, "changed": "replace", "deleted": "remove"`)
	for i := range 8 { // enough to be compacted
		o.put(fmt.Sprintf("%d.csv", i), 5)
	}

	require.Equal(t, "completed", o.refresh().Status)
	o.requireModel()

	var page struct{ Data []struct{ SnapshotID string } }

	o.call(http.MethodGet, "/snapshots?limit=1", "").json(t, &page)
	full := maps.Clone(o.model)

	for i := range 3 {
		o.put(fmt.Sprintf("%d.csv", i), 2)
	}

	o.remove("7.csv")
	require.Equal(t, "completed", o.refresh().Status)
	o.requireModel()

	// The rows of the first load are back. A file that changes replaces these too, although the source has loaded it again since.
	answer := o.call(http.MethodPost, "/snapshots/"+page.Data[0].SnapshotID+"/restore", "")
	require.Equal(t, http.StatusOK, answer.status, answer.body)

	o.model = full
	o.requireModel()

	for n := range int64(5) {
		delete(o.model, n+1) // those of 0.csv
	}

	o.put("0.csv", 3)
	require.Equal(t, "completed", o.refresh().Status)
	o.requireModel()

	// In a dataset with a key, new rows of a file may repeat the keys of the rows that they replace, but not those of other files.
	require.Contains(t, []int{http.StatusOK, http.StatusCreated}, o.call(http.MethodPut, "/key", `{"columns": ["n"]}`).status)

	own := o.files["0.csv"]
	other := o.files["5.csv"][0]
	o.there.put("0.csv", fmt.Sprintf("n\n%d\n%d\n9000\n", own[0], other))
	delete(o.model, own[1])
	delete(o.model, own[2])

	o.model[9000]++
	run := o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.EqualValues(t, 2, run.Rows)
	o.requireModel()
}

// put writes a file with new numbers in place of those that it had.
func (o *sourceOf) put(path string, count int) {
	o.t.Helper()
	o.forget(path)

	first := o.next + 1

	if content := o.numbers(count); o.web != nil {
		o.web.put(path, content)
	} else {
		o.there.put(path, content)
	}

	for n := first; n <= o.next; n++ {
		o.files[path] = append(o.files[path], n)
	}
}

// remove removes a file.
func (o *sourceOf) remove(path string) {
	o.t.Helper()
	o.forget(path)

	if o.web != nil {
		o.web.remove(path)

		return
	}

	_, err := o.there.client.DeleteObject(o.t.Context(), &s3.DeleteObjectInput{Bucket: &o.there.bucket, Key: new(o.there.prefix + path)})
	require.NoError(o.t, err)
}

// forget takes the numbers of a file out of the model.
func (o *sourceOf) forget(path string) {
	for _, n := range o.files[path] {
		delete(o.model, n)
	}

	delete(o.files, path)
}
