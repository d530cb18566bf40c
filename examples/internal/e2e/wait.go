// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/internal/testproc"
)

// pause is the time between two questions.
const pause = 20 * time.Millisecond

// ErrHopeless in the chain of an error says that waiting any longer does not help.
var ErrHopeless = errors.New("this will not change any more")

// Eventually calls check until it returns nil. After the timeout, and at once where the error is [ErrHopeless], the
// test fails with the last error; what is the rule that the test protects.
func Eventually(t testing.TB, timeout time.Duration, what string, check func() error) {
	t.Helper()
	err := testproc.Poll(timeout, func() error {
		err := check()
		if errors.Is(err, ErrHopeless) {
			t.Fatalf("%s: %v", what, err)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: not within %s: %v", what, timeout, err)
	}
}

// Throughout calls check again and again for that long and fails at the first error.
func Throughout(t testing.TB, d time.Duration, what string, check func() error) {
	t.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		if err := check(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return
		}
	}
}

// Allowed waits until a user has rights. The API server decides by what it has seen of the bindings, which is some time
// after they were created: what asks earlier is refused.
func Allowed(t testing.TB, admin kubernetes.Interface, user string, groups []string, rights ...authorizationv1.ResourceAttributes) {
	t.Helper()
	for i := range rights {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: &rights[i]}}
		Eventually(t, time.Minute, "a user has the rights that were given", func() error {
			answer, err := admin.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err == nil && !answer.Status.Allowed {
				err = fmt.Errorf("%s may not yet %+v: %+v", user, rights[i], answer.Status)
			}
			return err
		})
	}
}

// Get reads an address; another status than 200 is an error.
func Get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: status %d", url, resp.StatusCode)
	}
	return string(body), err
}
