// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeauth

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/belayproject/belay/internal/option"
)

// The bounds of a token's life. The API server takes no less than the shortest. It silently makes a year of 3607 s, the life that
// automounted tokens ask for, as long as the pod lives.
const (
	shortestToken = 10 * time.Minute
	LongestToken  = time.Hour
)

// TokenVolume is the volume from which an agent reads its token, under the names that rest.InClusterConfig looks for: token, ca.crt
// and namespace. Mounted at /var/run/secrets/kubernetes.io/serviceaccount it takes the place of the automounted one. The audience is that
// of a web API with a [Verifier], or empty for the API server. The kubelet renews the token when a fifth of its life is left; its
// life is in whole seconds, from 10 minutes to [LongestToken].
func TokenVolume(name, audience string, life time.Duration) (corev1.Volume, error) {
	seconds := int64(life / time.Second)
	token := corev1.ServiceAccountTokenProjection{Audience: audience, ExpirationSeconds: &seconds, Path: "token"}
	if errs := checkToken(field.NewPath("TokenVolume"), &token); len(errs) > 0 {
		return corev1.Volume{}, errs.ToAggregate()
	}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &token},
		{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
		}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
			{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
		}}},
	}}}}, nil
}

// CheckPod returns every reason why pods of this template would not be guarded as Options say: another service account than the policy's, an
// automounted token, a token volume of another life than [TokenVolume] gives, or no token for one of the audiences. These are what the agent has
// to do with; none of them stands for one, the API server, whose tokens name no audience. It is meant for a test of the manifest.
func (o Options) CheckPod(namespace string, spec *corev1.PodSpec, audiences ...string) error {
	check := option.For("identity/nodeauth.Options.CheckPod", nil)
	check.Require("spec", spec, "that of the pod's template")
	if err := check.Err(); err != nil {
		return err
	}
	var errs field.ErrorList
	if got := (types.NamespacedName{Namespace: namespace, Name: spec.ServiceAccountName}); got != o.ServiceAccount {
		errs = append(errs, field.Invalid(field.NewPath("spec", "serviceAccountName"), got.String(), "must be "+o.ServiceAccount.String()+", which the policy guards"))
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		errs = append(errs, field.Required(field.NewPath("spec", "automountServiceAccountToken"), "must be false: the automounted token lives for a year"))
	}
	if len(audiences) == 0 {
		audiences = []string{""}
	}
	return append(errs, checkTokens(field.NewPath("spec", "volumes"), spec.Volumes, audiences)...).ToAggregate()
}

// checkTokens wants one token for each audience: with one for another the API server answers 401, for ever.
func checkTokens(at *field.Path, volumes []corev1.Volume, audiences []string) field.ErrorList {
	var errs field.ErrorList
	var have []string
	for i, v := range volumes {
		if v.Projected == nil {
			continue
		}
		for j, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				have = append(have, s.ServiceAccountToken.Audience)
				errs = append(errs, checkToken(at.Index(i).Child("projected", "sources").Index(j).Child("serviceAccountToken"), s.ServiceAccountToken)...)
			}
		}
	}
	for _, a := range audiences {
		if !slices.Contains(have, a) {
			errs = append(errs, field.Required(at, fmt.Sprintf("there must be a projected serviceAccountToken for the audience %q, among those for %q", a, have)))
		}
	}
	return errs
}

func checkToken(at *field.Path, token *corev1.ServiceAccountTokenProjection) field.ErrorList {
	at = at.Child("expirationSeconds")
	if token.ExpirationSeconds == nil {
		return field.ErrorList{field.Required(at, "must be from 600 to 3600")}
	}
	if s := *token.ExpirationSeconds; s < int64(shortestToken/time.Second) || s > int64(LongestToken/time.Second) {
		return field.ErrorList{field.Invalid(at, s, "must be from 600 to 3600")}
	}
	return nil
}
