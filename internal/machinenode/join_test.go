// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package machinenode_test

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/belayproject/belay/internal/testenv/kubeconfig"
)

// mayJoin makes a bootstrap token, the Secret that machines are given it by, and what its holders may do: ask for a certificate, and have it approved.
// The kube-controller-manager approves and signs.
func (s *stage) mayJoin() {
	s.t.Helper()
	const id, secret = "be1a70", "0123456789abcdef"
	_, err := s.core.CoreV1().Secrets(metav1.NamespaceSystem).Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{"token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true"},
	}, metav1.CreateOptions{})
	s.must(err)
	for _, role := range []string{"system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"} {
		_, err := s.core.RbacV1().ClusterRoleBindings().Create(s.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "join-"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:bootstrappers"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}, metav1.CreateOptions{})
		s.must(err)
	}
	_, err = s.core.CoreV1().Secrets(s.namespace).Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "join"}, Data: map[string][]byte{"kubeconfig": s.bootstrapConfig(id + "." + secret)},
	}, metav1.CreateOptions{})
	s.must(err)
}

func (s *stage) bootstrapConfig(token string) []byte {
	s.t.Helper()
	ca, err := os.ReadFile(s.env.CAFile())
	s.must(err)
	data, err := kubeconfig.Encode(&rest.Config{
		Host: s.env.Config().Host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	})
	s.must(err)
	return data
}
