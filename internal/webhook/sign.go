package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

const secretPrefix = "whsec_"

// secret returns the secret of a version. It is derived, so that it need not be stored.
func (w *Webhooks) secret(id uuid.UUID, version int) []byte {
	mac := hmac.New(sha256.New, w.Secret)
	fmt.Fprintf(mac, "webhook %s %d", id, version)

	return mac.Sum(nil)
}

// shownSecret returns the form in which people get a secret.
func shownSecret(secret []byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString(secret)
}

// checkOf returns what is stored of a secret.
func checkOf(secret []byte) []byte {
	sum := sha256.Sum256(secret)

	return sum[:]
}

// signatures returns the header webhook-signature: one signature for each secret.
func signatures(secrets [][]byte, id string, at time.Time, body []byte) string {
	var list []string

	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
		mac.Write(body)
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}

	return strings.Join(list, " ")
}
