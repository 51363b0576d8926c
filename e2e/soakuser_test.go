//go:build soak

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

const soakNamespace = "soak"

// soakUser is a user who does one thing after the other, and repeats each request until it is answered.
type soakUser struct {
	k      *soak
	index  int
	name   string
	key    *signer
	token  string        // an API token, of every second user
	wait   time.Duration // longest time of one request
	random *rand.Rand

	next         int64
	acknowledged map[int64]bool // ids of rows
	unknown      map[int64]bool // of rows that were sent once, without an answer
	most         int            // rows that this user has counted
	ledger       map[int64]int64
	versions     int64
	grants       map[int]*grantModel // by the index of the reader
}

func newSoakUser(k *soak, key *signer, index int, seed uint64) *soakUser {
	u := &soakUser{
		k: k, index: index, name: nameOf(index), key: key, wait: patience, random: rand.New(rand.NewPCG(seed, uint64(index)+1)),
		acknowledged: map[int64]bool{}, unknown: map[int64]bool{}, ledger: map[int64]int64{}, grants: map[int]*grantModel{},
	}

	for _, reader := range []int{1, 2} {
		u.grants[(index+reader)%soakUsers] = &grantModel{}
	}

	return u
}

func nameOf(index int) string { return "soak-" + strconv.Itoa(index) }

// bearer returns the API token, or a new token of the issuer.
func (u *soakUser) bearer() string {
	if u.token != "" {
		return u.token
	}

	return u.key.token(u.name)
}

func (u *soakUser) mark() string { return "mark-" + strconv.Itoa(u.index) }

// dataset returns one of the user's own datasets for the helpers of other tests, directly on a replica.
func (u *soakUser) dataset(name string) *filled {
	return &filled{u.k.t, u.k.apis[0], u.bearer(), u.name, soakNamespace, name}
}

// settle creates the user's datasets.
func (u *soakUser) settle() {
	if u.index%2 == 0 {
		var made struct{ Token string }

		u.must(http.MethodPost, "/user/tokens", `{"name": "soak", "role": "owner"}`, &made)
		u.token = made.Token
	}

	for _, name := range []string{"orders", "ledger"} {
		u.must(http.MethodPost, "/ingest/new/"+soakNamespace+"/"+name, "", nil)
	}

	u.post()
	u.change()

	if len(u.acknowledged) == 0 || len(u.ledger) == 0 {
		u.k.t.Errorf("%s could not begin", u.name)
	}
}

// must repeats a request until it has succeeded.
func (u *soakUser) must(method, path, body string, into any) bool {
	got := u.until(method, path, body, "Idempotency-Key: "+uuid.NewString())
	if got == nil {
		return false
	}

	if got.status >= http.StatusBadRequest {
		u.k.t.Errorf("%s: %s %s %s: %d %s", u.name, method, path, body, got.status, got.body)

		return false
	}

	if into != nil {
		if err := json.Unmarshal([]byte(got.body), into); err != nil {
			u.k.t.Errorf("%s %s: %v: %s", method, path, err, got.body)

			return false
		}
	}

	return true
}

// soakPatience is how long a user repeats a request.
const soakPatience = 5 * time.Minute

// until repeats a request while its answer says to repeat it. It returns nil after a long time.
func (u *soakUser) until(method, path, body string, headers ...string) *answer {
	for deadline := time.Now().Add(soakPatience); time.Now().Before(deadline); time.Sleep(rand.N(time.Second)) {
		if got := u.once(method, path, body, headers...); !again(got) {
			return got
		}
	}

	u.k.t.Errorf("%s: no answer for %v: %s %s", u.name, soakPatience, method, path)

	return nil
}

// again reports whether a request is to be repeated.
func again(got *answer) bool {
	return got == nil || slices.Contains([]int{
		http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
	}, got.status)
}

// once sends a request and checks the answer. It returns nil if none arrived.
func (u *soakUser) once(method, path, body string, headers ...string) *answer {
	ctx, cancel := context.WithTimeout(u.k.t.Context(), u.wait)
	defer cancel()

	began := time.Now()

	got, err := try(newRequest(u.k.t, method, u.k.front+path, u.bearer(), body, headers...).WithContext(ctx))
	if err != nil {
		u.k.times.answered(nil)

		return nil
	}

	u.k.times.answered(got)
	u.judge(method+" "+path, began, time.Now(), got.body)

	if got.status == http.StatusInternalServerError {
		u.k.t.Errorf("%s: %s %s %.300s: %s", u.name, method, path, body, got.body)
	}

	return got
}

// work does one thing after the other.
func (u *soakUser) work(ctx context.Context) {
	things := []struct {
		name  string
		often int
		do    func()
	}{
		{"rows", 6, u.post},
		{"row changes", 4, u.change},
		{"load", 2, u.load},
		{"query", 6, u.countOwn},
		{"query of others", 6, u.readOther},
		{"list", 3, u.list},
		{"question", 2, u.question},
		{"stream", 2, u.stream},
		{"a2a", 2, u.message},
		{"mcp", 3, u.tool},
		{"share", 2, u.share},
	}

	all := 0
	for _, one := range things {
		all += one.often
	}

	for waitFor(ctx, time.Duration(u.random.Int64N(int64(soakPause)))); ctx.Err() == nil; waitFor(ctx, time.Duration(u.random.Int64N(int64(soakPause)))) {
		chosen := u.random.IntN(all)
		for _, one := range things {
			if chosen -= one.often; chosen < 0 {
				u.k.timed(one.name, one.do)

				break
			}
		}
	}
}

// fresh returns ids for new rows, and the rows as JSON.
func (u *soakUser) fresh() (ids []int64, rows []string) {
	for range 1 + u.random.IntN(20) {
		u.next++
		ids = append(ids, u.next)
		rows = append(rows, fmt.Sprintf(`{"id": %d, "mark": %q}`, u.next, u.mark()))
	}

	return ids, rows
}

// post appends rows. One of seven requests has no key and is sent only once.
func (u *soakUser) post() {
	ids, rows := u.fresh()
	path, body := u.path("orders")+"/rows", `{"data": [`+strings.Join(rows, ", ")+`]}`

	if len(u.acknowledged) > 0 && u.random.IntN(7) == 0 {
		known := u.unknown
		if got := u.once(http.MethodPost, path, body); got != nil && got.status == http.StatusOK {
			known = u.acknowledged
		}

		for _, id := range ids {
			known[id] = true
		}

		return
	}

	if u.must(http.MethodPost, path, body, nil) {
		for _, id := range ids {
			u.acknowledged[id] = true
		}
	}
}

func (u *soakUser) path(name string) string {
	return "/data/" + u.name + "/" + soakNamespace + "/" + name
}

// change merges rows into the ledger, or deletes some.
func (u *soakUser) change() {
	keys := map[int64]bool{}
	for range 1 + u.random.IntN(10) {
		keys[u.random.Int64N(40)] = true
	}

	var list []string
	for n := range keys {
		list = append(list, strconv.FormatInt(n, 10))
	}

	slices.Sort(list)

	isDelete := len(u.ledger) > 0 && u.random.IntN(3) == 0
	u.versions++

	path, body := "/rows/delete", fmt.Sprintf(`{"condition": "n IN (%s)"}`, strings.Join(list, ", "))
	if !isDelete {
		for i, n := range list {
			list[i] = fmt.Sprintf(`{"n": %s, "version": %d, "mark": "%s-own"}`, n, u.versions, u.mark())
		}

		path, body = "/rows?mode=merge&key=n", `{"data": [`+strings.Join(list, ", ")+`]}`
	}

	if !u.must(http.MethodPost, u.path("ledger")+path, body, nil) {
		return
	}

	for n := range keys {
		if delete(u.ledger, n); !isDelete {
			u.ledger[n] = u.versions
		}
	}
}

// load uploads a file and loads it.
func (u *soakUser) load() {
	ids, _ := u.fresh()

	now, done := u.upload(ids, u.must)
	if !done || !u.awaitLoad(now) {
		return
	}

	for _, id := range ids {
		u.acknowledged[id] = true
	}
}

// upload uploads one or several files with rows and requests their ingestion. do sends a request.
func (u *soakUser) upload(ids []int64, do func(method, path, body string, into any) bool) (now ingestion, done bool) {
	var wanted, contents []string

	for part := range slices.Chunk(ids, 8) {
		lines := []string{"id,mark"}
		for _, id := range part {
			lines = append(lines, fmt.Sprintf("%d,%s", id, u.mark()))
		}

		contents = append(contents, strings.Join(lines, "\n")+"\n")
		wanted = append(wanted, fmt.Sprintf(`{"filename": "orders-%d.csv", "size": %d}`, part[0], len(contents[len(contents)-1])))
	}

	var session prepared
	if !do(http.MethodPost, "/file-upload/prepare", `{"filesToUpload": [`+strings.Join(wanted, ", ")+`]}`, &session) {
		return now, false
	}

	for i, file := range session.Files {
		etag, sent := u.send(file.PresignedURLs[0].URL, contents[i])
		if !sent || !do(http.MethodPost, "/file-upload/"+session.SessionID+"/files/"+file.FileID+"/finish",
			fmt.Sprintf(`{"uploadId": %q, "key": %q, "parts": [{"partNumber": 1, "etag": %q}]}`, file.UploadID, file.Key, etag), nil) {
			return now, false
		}
	}

	done = do(http.MethodPost, u.path("orders")+"/ingestions", fmt.Sprintf(`{"sessionId": %q, "mode": "append", "accept": ["all"]}`, session.SessionID), &now)

	return now, done
}

// awaitLoad waits until an ingestion has ended, and retries it if a part of the service was missing.
func (u *soakUser) awaitLoad(now ingestion) bool {
	into := u.path("orders") + "/ingestions"

	for deadline := time.Now().Add(soakPatience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		method, address := http.MethodGet, into+"/"+now.ID

		switch {
		case now.Status == "completed":
			return true
		case now.Status == "failed" && slices.Contains([]string{"INTERNAL", "UNAVAILABLE"}, now.Error.Code):
			u.k.times.count("load failed " + now.Error.Code)

			method, address = http.MethodPost, address+"/retry"
		case now.ended():
			u.k.t.Errorf("%s: a load ended as %s: %+v", u.name, now.Status, now.Error)

			return false
		}

		now = ingestion{}
		if !u.must(method, address, "", &now) {
			return false
		}
	}

	u.k.t.Errorf("%s: a load does not end", u.name)

	return false
}

// send uploads a part and returns its ETag.
func (u *soakUser) send(address, content string) (etag string, sent bool) {
	for deadline := time.Now().Add(soakPatience); time.Now().Before(deadline); time.Sleep(rand.N(time.Second)) {
		ctx, cancel := context.WithTimeout(u.k.t.Context(), u.wait)
		got, err := try(newRequest(u.k.t, http.MethodPut, address, "", content).WithContext(ctx))

		cancel()

		if err == nil && got.status == http.StatusOK {
			return got.header.Get("ETag"), true
		}

		if u == u.k.prober {
			return "", false
		}
	}

	u.k.t.Errorf("%s: the store takes no part", u.name)

	return "", false
}
