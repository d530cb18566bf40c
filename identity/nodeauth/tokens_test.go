// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth_test

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// signed signs claims as the API server does, with its own key, under the header of one of its tokens.
func (c *cluster) signed(t *testing.T, header string, claims map[string]any) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(c.env.CAFile()), "service-accounts.key"))
	must(t, err)
	block, _ := pem.Decode(raw)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	must(t, err)
	payload, err := json.Marshal(claims)
	must(t, err)
	text := header + "." + base64.RawURLEncoding.EncodeToString(payload)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
	must(t, err)
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func parts(t *testing.T, token string) (header string, claims map[string]any) {
	t.Helper()
	p := strings.Split(token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(p[1])
	must(t, err)
	must(t, json.Unmarshal(payload, &claims))
	return p[0], claims
}

// shifted is the token with its times moved, signed again.
func (c *cluster) shifted(t *testing.T, token string, by time.Duration) string {
	t.Helper()
	header, claims := parts(t, token)
	for _, k := range []string{"exp", "iat", "nbf"} {
		claims[k] = claims[k].(float64) + by.Seconds()
	}
	return c.signed(t, header, claims)
}

// secretToken is a token of the kind that lives in a Secret, which a controller would put there.
func (c *cluster) secretToken(t *testing.T) string {
	t.Helper()
	account, err := c.admin.CoreV1().ServiceAccounts(c.namespace).Get(t.Context(), agents, metav1.GetOptions{})
	must(t, err)
	header, _ := parts(t, c.token(t, agents, nil))
	const name = "agent-token"
	token := c.signed(t, header, map[string]any{
		"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:" + c.namespace + ":" + agents,
		"kubernetes.io/serviceaccount/namespace": c.namespace, "kubernetes.io/serviceaccount/secret.name": name,
		"kubernetes.io/serviceaccount/service-account.name": agents, "kubernetes.io/serviceaccount/service-account.uid": string(account.UID),
	})
	_, err = c.admin.CoreV1().Secrets(c.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			corev1.ServiceAccountNameKey: agents, corev1.ServiceAccountUIDKey: string(account.UID),
		}},
		Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(token), "namespace": []byte(c.namespace)},
	}, metav1.CreateOptions{})
	must(t, err)
	return token
}

// remade deletes a Node and makes it again under its name.
func (c *cluster) remade(t *testing.T, node *corev1.Node) *corev1.Node {
	t.Helper()
	must(t, c.admin.CoreV1().Nodes().Delete(t.Context(), node.Name, metav1.DeleteOptions{}))
	again, err := c.env.CreateNode(t.Context(), node.Name)
	must(t, err)
	if again.UID == node.UID {
		t.Fatalf("the new node has the old UID %q", node.UID)
	}
	return again
}

// try makes the writes that an agent lives by: the status of its own object, and its own heartbeat.
func (c *cluster) try(t *testing.T, token, node string) map[string]error {
	t.Helper()
	return c.writesOf(t, c.client(t, token), node)
}

func (c *cluster) writesOf(t *testing.T, client dynamic.Interface, node string) map[string]error {
	t.Helper()
	options := metav1.PatchOptions{DryRun: dry}
	_, status := client.Resource(shadows).Patch(t.Context(), node, types.MergePatchType, []byte(`{"status":{"a":"b"}}`), options, "status")
	_, beat := client.Resource(leases).Namespace(c.namespace).Patch(t.Context(), "agent-"+node, types.MergePatchType, []byte(`{"spec":{"holderIdentity":"a"}}`), options)
	_, condition := client.Resource(nodes).Patch(t.Context(), node, types.MergePatchType, []byte(`{}`), options, "status")
	return map[string]error{"status": status, "heartbeat": beat, "node": condition}
}

// TestOnlyTokensOfPodsAreTaken covers R-AU-02, R-AU-03, R-AU-06 and R-RO-06 (expired, another audience): with every other kind of token an agent
// cannot write even its own.
func TestOnlyTokensOfPodsAreTaken(t *testing.T) {
	c := newCluster(t)
	other := &cluster{env: c.env, admin: c.admin, objects: c.objects, namespace: c.env.Namespace(t), options: c.options}
	other.account(t, agents)
	a := c.agent(t, "a")
	c.has(t, a.node)
	c.guard(t)
	namesake := other.pod(t, agents, a.pod.Name, a.node.Name)
	unscheduled := c.pod(t, agents, "unscheduled", "")
	node := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: a.node.Name, UID: a.node.UID}
	const needs = "but must name one of each"
	for _, row := range []struct {
		name, token string
		says        string // of the policy's denial
		code        int    // otherwise: 200, 401 or 403 by RBAC
	}{
		{name: "bound to the pod", token: a.token, code: 200},
		{name: "bound to the pod, signed again", token: c.shifted(t, a.token, -time.Second), code: 200},
		{name: "bound to a pod without a node", token: c.token(t, agents, bound(unscheduled)), says: "names 0 nodes, 0 node UIDs and 1 pods, " + needs},
		{name: "unbound", token: c.token(t, agents, nil), says: "names 0 nodes, 0 node UIDs and 0 pods, " + needs},
		{name: "from a Secret", token: c.secretToken(t), says: "names 0 nodes, 0 node UIDs and 0 pods, " + needs},
		{name: "bound to the Node", token: c.token(t, agents, node), says: "names 1 nodes, 1 node UIDs and 0 pods, " + needs},
		{name: "expired", token: c.shifted(t, a.token, -time.Hour), code: 401},
		{name: "for another audience", token: c.token(t, agents, bound(a.pod), "somebody-else"), code: 401},
		{name: "of another account", token: other.token(t, agents, bound(namesake)), code: 200}, // it has the same rights, and nobody guards it
	} {
		t.Run(row.name, func(t *testing.T) {
			for what, err := range c.try(t, row.token, a.node.Name) {
				switch {
				case row.code == 200 && err != nil:
					t.Errorf("%s: got %v, want it accepted", what, err)
				case row.code == 401 && !apierrors.IsUnauthorized(err):
					t.Errorf("%s: got %v, want 401", what, err)
				case row.code == 0 && c.denial(err, row.says) != "":
					t.Errorf("%s: %s", what, c.denial(err, row.says))
				}
			}
		})
	}
}

// TestRightsEndWithThePod covers R-AU-02 and R-RO-06: a deleted pod's token is refused as soon as the server's memory of it, of 10 s, is over.
func TestRightsEndWithThePod(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.has(t, a.node)
	must(t, c.admin.CoreV1().Pods(c.namespace).Delete(t.Context(), a.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	eventually(t, func() string {
		for what, err := range c.try(t, a.token, a.node.Name) {
			if !apierrors.IsUnauthorized(err) {
				return what + " is answered with " + errorText(err) + ", want 401"
			}
		}
		return ""
	})
}

func errorText(err error) string {
	if err == nil {
		return "success"
	}
	return err.Error()
}

// TestRightsEndWithTheNode covers R-AU-07 and R-RO-06 (the right name with another UID): after a Node was deleted and made again under its name, a pod of the old one writes neither the
// new Node nor what belongs to it. It could write what need not be owned, as Resource.NotOwned says.
func TestRightsEndWithTheNode(t *testing.T) {
	c := newCluster(t)
	a := c.agent(t, "a")
	c.guard(t)
	again := c.remade(t, a.node)
	c.has(t, again)
	answers := c.try(t, a.token, again.Name)
	if fault := c.denial(answers["status"], `does not belong to this node "`+a.node.Name+`": before and after the write it must have one owner of kind Node, `+
		`the one with the UID `+string(a.node.UID)); fault != "" {
		t.Error(fault)
	}
	if fault := c.denial(answers["node"], `node "`+a.node.Name+`" is not the one that the token is bound to: its UID must be `+string(a.node.UID)); fault != "" {
		t.Error(fault)
	}
	if err := answers["heartbeat"]; err != nil {
		t.Error(err)
	}
	for what, err := range c.try(t, c.token(t, agents, bound(a.pod)), again.Name) {
		if err != nil {
			t.Errorf("%s with a new token: %v", what, err)
		}
	}
}

// TestServerStretchesTheDefaultToken covers R-AU-03: the reason why TokenVolume gives no life of 3607 s.
func TestServerStretchesTheDefaultToken(t *testing.T) {
	c := newCluster(t)
	pod := c.pod(t, agents, "a", c.node(t, "a").Name)
	for seconds, want := range map[int64]time.Duration{600: 10 * time.Minute, 3600: time.Hour, 3607: 365 * 24 * time.Hour} {
		answer, err := c.admin.CoreV1().ServiceAccounts(c.namespace).CreateToken(t.Context(), agents, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds, BoundObjectRef: bound(pod)},
		}, metav1.CreateOptions{})
		must(t, err)
		_, claims := parts(t, answer.Status.Token)
		life := time.Unix(int64(claims["exp"].(float64)), 0).Sub(time.Unix(int64(claims["iat"].(float64)), 0))
		if life < want || life > want+time.Minute {
			t.Errorf("a token for %d s lives for %s, want %s", seconds, life, want)
		}
	}
}
