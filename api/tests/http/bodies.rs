//! JSON bodies that are not objects: the error names the expected type.

use crate::world::World;

#[tokio::test]
async fn non_objects_name_the_expected_type() {
    let world = World::start().await;
    for path in ["/emails", "/suppressions", "/suppressions/check", "/templates", "/auth/sign-in"] {
        for (body, found) in [
            ("[]", "a list"),
            (" null", "null"),
            ("7", "a number"),
            ("\"{}\"", "a string"),
            ("true", "a boolean"),
            ("[{\"from\": 1}]", "a list"),
        ] {
            let response = world.post(path, body).await;
            assert_eq!((response.status.as_u16(), response.code().as_str()), (400, "validation_error"), "{path}");
            let message = response.json()["error"]["message"].as_str().unwrap().to_owned();
            assert_eq!(message, format!("The body must be a JSON object (`{{…}}`), not {found}"), "{path}");
        }
    }
    // A batch may be a list. Text that is not JSON gets `invalid_json`.
    assert_eq!(world.post("/emails/batch", "null").await.code(), "validation_error");
    for body in ["", "nul", "{", "{]"] {
        assert_eq!(world.post("/emails", body).await.code(), "invalid_json", "{body}");
    }
    world.end().await;
}
