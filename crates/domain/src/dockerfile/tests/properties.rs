use proptest::prelude::*;

use super::*;

/// Generates text that resembles a Dockerfile.
fn near_dockerfiles() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "(FROM|COPY|ADD|RUN|ARG|ENV|LABEL|CMD|ONBUILD|HEALTHCHECK|VOLUME|SHELL|EXPOSE) ",
        "(web:1|abc|8db98c|--from=|--chown=|--mount=type=cache,target=|--platform=|http://x|\\./|AS x|CMD )",
        "[-#$`\"'{}:=<\\[\\],\\\\ \ta-c0-9àÅ\u{a0}]{0,6}",
        "(\\[\"a\", \"b c\"\\]|\\\\\n|`\n|\n|\r\n|# escape=`\n|# c\n)",
    ];
    proptest::collection::vec(piece, 0..30).prop_map(|pieces| format!("FROM web:1\n{}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn rendered_trees_parse_to_themselves(text in near_dockerfiles()) {
        if let Ok(tree) = Dockerfile::parse(text.as_bytes()) {
            let rendered = tree.render();
            let again = Dockerfile::parse(rendered.as_bytes()).unwrap();
            prop_assert_eq!(instructions(&tree), instructions(&again), "{:?}", rendered);
            prop_assert_eq!(tree.escape, again.escape);
            prop_assert_eq!(&again.render(), &rendered);
        }
    }

    #[test]
    fn checked_trees_parse_to_themselves(text in near_dockerfiles()) {
        if let Ok(checked) = check(&text, &[]) {
            let again = Dockerfile::parse(checked.render().as_bytes()).unwrap();
            prop_assert_eq!(instructions(checked.tree()), instructions(&again), "{:?}", checked.render());
        }
    }

    #[test]
    fn no_hexadecimal_reference_is_accepted(
        id in "[0-9a-fA-F]{1,64}",
        cut in 0_usize..64,
        space in "[ \t]{1,3}|[ \t]\\\\\n[ \t]?|[ ]\\\\\n#x\n",
        form in 0..8,
    ) {
        let (first, second) = id.split_at(cut.min(id.len()));
        let text = match form {
            0 => format!("FROM{space}{id}"),
            1 => format!("from{space}{first}\\\n{second} AS x"),
            2 => format!("ARG A={first}\nARG B=${{A}}{second}\nFROM{space}$B"),
            3 => format!("FROM{space}${{A:-{first}${{B:-{second}}}}}"),
            4 => format!("FROM{space}'{first}'\"{second}\""),
            5 => format!("FROM scratch\nCOPY{space}--from={id}{space}/ /"),
            6 => format!("FROM scratch\nONBUILD{space}COPY{space}--from={id}{space}/ /"),
            _ => format!("FROM scratch\nRUN{space}--mount=from={id},target=/x{space}x"),
        };
        prop_assert!(images(&text, &[]).is_err(), "{:?}", text);
    }
}
