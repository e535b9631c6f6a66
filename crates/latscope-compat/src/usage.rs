//! Messages about invalid words: one line with the cause, and a suggestion.

/// Message of the parser without its paragraphs, and without the tip to pass a misspelt option as a value.
pub fn of_parser(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let paragraphs = message.split("\n\n").filter(|paragraph| {
        let beginnings = ["For more information", "Usage: "];
        !beginnings.iter().any(|beginning| paragraph.trim_start().starts_with(beginning))
    });
    let lines = paragraphs.flat_map(str::lines).filter(|line| !line.trim_start().starts_with("tip: to pass"));
    lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ").replace(" tip: ", "; ")
}

/// Suggestion such as `; did you mean wake?` if one of the choices is similar to a word, else empty.
pub fn did_you_mean<'a>(word: &str, choices: impl Iterator<Item = &'a str>) -> String {
    let typos = |choice: &&str| match choice.starts_with(word) {
        true => 0,
        false => strsim::damerau_levenshtein(word, choice),
    };
    match choices.min_by_key(typos) {
        Some(nearest) if typos(&nearest) <= word.len() / 3 => format!("; did you mean {nearest}?"),
        _ => String::new(),
    }
}
